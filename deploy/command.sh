#!/bin/sh
# order-gateway and order-worker for a root shell, on the machine where the service of that name is installed: the command
# runs as the service's user, in its folder, with its settings (deploy/install.sh puts it into /usr/local/sbin). A setting
# that the shell has itself comes first: RAKUTEN_OPERATOR_TOKEN=... order-gateway resolve ...
set -eu
name=$(basename "$0")
settings=/etc/order-gateway/${name#order-}.env
fail() { printf '%s: %s\n' "$name" "$*" >&2; exit 2; }

# It is about the shell and the home of whoever types, and needs no settings.
case "${1:-}" in --install-completion | --show-completion) exec "/opt/order-gateway/.venv/bin/$name" "$@" ;; esac

[ "$(id -u)" = 0 ] || fail "run it as root; it takes the service's settings, which only root can read"
[ -r "$settings" ] || fail "$settings is not there; see docs/deployment.md"

# What the shell has itself; an environment's values may hold line ends, its names cannot.
own=" $(env | sed -n 's/^\(RAKUTEN_[A-Z0-9_]*\)=.*/\1/p' | tr '\n' ' ')"
number=0
while IFS= read -r line || [ -n "$line" ]; do
    number=$((number + 1))
    case "$line" in '' | '#'* | ';'*) continue ;; esac
    setting=${line%%=*} value=${line#*=}
    case "$setting" in "$line" | '' | *[!A-Za-z0-9_]* | [0-9]*) fail "$settings, line $number: write NAME=value" ;; esac
    case "$value" in
        '"'*'"' | "'"*"'") value=${value#?} value=${value%?} ;;
        *[[:cntrl:]]*) fail "$settings, line $number: a control character, perhaps a line end of another system" ;;
        *[\"\'\\]* | ' '* | *' ') fail "$settings, line $number: put the value of $setting into single quotes" ;;
    esac
    case "$value" in *[\"\'\\]*) fail "$settings, line $number: no quotes and no backslash in the value of $setting" ;; esac
    case "$own" in *" $setting "*) ;; *) export "$setting=$value" ;; esac
done < "$settings"

cd "/var/lib/$name"
export HOME="/var/lib/$name"
exec setpriv --reuid="$name" --regid="$name" --init-groups --no-new-privs "/opt/order-gateway/.venv/bin/$name" "$@"
