#!/bin/sh
# Installs one part on this machine, as root, from the folder /opt/order-gateway: programs, user, settings, units, and a
# command of the same name for a root shell. Run again after an upgrade; settings that are there are never touched.
#   sh deploy/install.sh gateway HOST    HOST: the name under which workers and people reach the gateway
#   sh deploy/install.sh gateway HOST 2  two gateways (up to nine) on this machine, which share a PostgreSQL database
#   sh deploy/install.sh worker HOST
set -eu
# Whatever the shell's own mask: the services' users read the programs.
umask 022
fail() { printf 'install: %s\n' "$*" >&2; exit 1; }

part=${1:-} host=${2:-} several=${3:-}
case "$part" in gateway | worker) ;; *) fail "say what to install: sh deploy/install.sh gateway HOST (or: worker HOST)" ;; esac
case "$host" in '' | *[!A-Za-z0-9.-]*) fail "name the gateway's host, such as gateway.example: sh deploy/install.sh $part HOST" ;; esac
case "$part$several" in gateway | gateway[2-9] | worker) ;; *) fail "say how many gateways, 2 to 9: sh deploy/install.sh gateway $host 2" ;; esac
[ "$(id -u)" = 0 ] || fail "run it as root"
cd "$(dirname "$0")/.."
[ "$(pwd -P)" = /opt/order-gateway ] || fail "the units expect the project in /opt/order-gateway, and this is $(pwd -P)"
name=order-$part settings=/etc/order-gateway/$part.env

python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "'$python' is no Python 3.11 or newer; name one with PYTHON="
# An environment that was made once is brought up to date in place; one that was not finished has no pip, and is made anew.
if ! .venv/bin/pip --version > /dev/null 2>&1; then
    "$python" -c 'import ensurepip, venv' 2> /dev/null ||
        fail "'$python' has no venv module; on Debian and Ubuntu: apt-get install python3-venv"
    rm -rf .venv
    "$python" -m venv .venv || fail "'$python' could not make /opt/order-gateway/.venv (see above)"
fi
for pinned in runtime build ${several:+postgres}; do
    .venv/bin/pip install --quiet --require-hashes -r "requirements/$pinned.txt" ||
        fail "the dependencies could not be installed (see above); check the network connection and run it again"
done
.venv/bin/pip install --quiet --no-deps --no-build-isolation ./clients/python . || fail "the project could not be installed (see above)"
chmod -R go+rX .

# A fixed user: database and journal outlive every process, and the commands of a root shell run as this user, too.
getent passwd "$name" > /dev/null ||
    useradd --system --user-group --home-dir "/var/lib/$name" --no-create-home --shell /usr/sbin/nologin "$name"
install -d -m 0700 -o "$name" -g "$name" "/var/lib/$name"
install -d -m 0755 /etc/order-gateway /etc/order-gateway/tls

secret() { .venv/bin/python -c 'import secrets; print(secrets.token_urlsafe(32))'; }
signing_secret() {
    .venv/bin/python -c 'import base64, secrets; print("whsec_" + base64.b64encode(secrets.token_bytes(32)).decode())'
}
template=deploy/$part.env
[ -z "$several" ] || template=deploy/gateways.env
if [ ! -e "$settings" ]; then
    (
        umask 077
        sed -e "s|@HOST@|$host|" -e "s|@UPSTREAM@|$(secret)|" -e "s|@WORKER@|$(secret)|" -e "s|@OPERATOR@|$(secret)|" \
            -e "s|@SIGNING@|$(signing_secret)|" "$template" > "$settings.new"
        mv "$settings.new" "$settings"
    )
fi
number=0
while [ "$number" -lt "${several:-0}" ]; do
    number=$((number + 1))
    own=/etc/order-gateway/gateway-$number.env
    # 31109 and 31110, 31209 and 31210, …, as in docs/nginx.conf.
    [ -e "$own" ] || (
        umask 077
        printf '# What gateway %s has of its own; the rest stands in gateway.env.\nRAKUTEN_GATEWAY_NAME=%s-%s\nRAKUTEN_GATEWAY_PORT=31%s09\nRAKUTEN_GATEWAY_GRPC_PORT=31%s10\n' \
            "$number" "$(uname -n)" "$number" "$number" "$number" > "$own"
    )
done

install -m 0755 deploy/command.sh "/usr/local/sbin/$name"
install -m 0644 "deploy/systemd/$name"* /etc/systemd/system/
systemctl daemon-reload
printf 'install: %s is installed, its settings are in %s; next: docs/deployment.md\n' "$name" "$settings"
