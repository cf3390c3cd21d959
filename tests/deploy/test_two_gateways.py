"""docs/deployment.md, two gateways on one database: as printed, with a real PostgreSQL server and a real nginx."""

import re

import pytest

from tests.deploy.machine import Machine
from tests.deploy.printed import blocks
from tests.optional_parts import where_is

pytestmark = [
    pytest.mark.needs("machine", "openssl", "git", "nginx", "postgresql"),
    pytest.mark.timeout(300),
    pytest.mark.extended,
]

PASSWORD = "pass:word-of-the-database"

DATABASE = """
printf '127.0.0.1 db.example\\n' >> /etc/hosts
install -d -m 0700 -o postgres -g postgres /run/database
cd /run/database
PATH=$PATH:BINARIES
setpriv --reuid=postgres --regid=postgres --init-groups initdb --pgdata=data --auth-local=peer \
    --auth-host=scram-sha-256 --encoding=UTF8 --locale=C --no-sync > /dev/null
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=db.example \
    -addext subjectAltName=DNS:db.example -keyout data/server.key -out data/server.crt 2> /dev/null
chown postgres:postgres data/server.key data/server.crt
chmod 0600 data/server.key
setpriv --reuid=postgres --regid=postgres --init-groups pg_ctl start --wait --silent --pgdata=data --log=log \
    --options='-c ssl=on -c fsync=on -c unix_socket_directories=/run/database'
setpriv --reuid=postgres --regid=postgres --init-groups psql -q -v ON_ERROR_STOP=1 --host=/run/database postgres <<'END'
CREATE ROLE gateway LOGIN PASSWORD 'OF-THE-ROLE';
CREATE DATABASE orders OWNER gateway ENCODING 'UTF8' TEMPLATE template0;
END
"""

NGINX = """
cat > /etc/systemd/system/nginx.service <<'END'
[Service]
Type=exec
ExecStart=/usr/sbin/nginx -g "daemon off;"
END
rm -f /etc/nginx/sites-enabled/*
"""


@pytest.fixture
def prepared(root: Machine) -> Machine:
    """A machine with a database server, and with nginx installed."""
    initdb = where_is("initdb")
    assert initdb is not None
    root.must(DATABASE.replace("BINARIES", initdb.removesuffix("/initdb")).replace("OF-THE-ROLE", PASSWORD))
    root.must(NGINX)
    root.must(blocks("deployment.md", "Install")[0])
    return root


def test_two_gateways_behind_nginx_as_printed_and_one_of_them_dies(prepared: Machine) -> None:
    install, password, certificate, nginx, started = blocks("deployment.md", "Two gateways on one database")
    prepared.must(install)
    prepared.must("cp /run/database/data/server.crt /etc/order-gateway/tls/database-ca.pem")
    prepared.must(password.replace("PASSWORD", PASSWORD.replace(":", "\\:")))
    for block in (certificate, nginx):
        prepared.must(block)
    told = prepared.must(started)
    assert re.search("^gateway +ok", told, re.MULTILINE), told
    assert len(re.findall(r"^serves +\S+-[12] .*, \d+ waiting", told, re.MULTILINE)) == 2, told
    assert '"success":true' in told

    for name in ("gateway.env", "gateway-1.env", "gateway-2.env", "database.pgpass"):
        mode = prepared.must(f"stat -c '%a %U' /etc/order-gateway/{name}").strip()
        assert mode in {"600 root", "400 order-gateway"}, name
    shown = prepared.must("cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ | tr '\\0' '\\n'; cat /run/stand-in/*.log")
    assert PASSWORD not in shown
    assert "RAKUTEN_GATEWAY_NAME" in shown, "the processes were looked at"

    prepared.must("kill -9 $(cat /run/stand-in/order-gateway@1.service.pid)")
    for _ in range(4):
        told = prepared.must("order-gateway health")
        assert re.search(r"^serves +\S+-2 .*answers", told, re.MULTILINE), told
    prepared.must("systemctl start order-gateway@1")
    prepared.must("systemctl restart order-gateway@2")
    assert "queued" in prepared.must("order-gateway health")
    again = prepared.must(install + "\ncat /etc/order-gateway/gateway-1.env")
    assert "RAKUTEN_GATEWAY_PORT=31109" in again


@pytest.mark.parametrize("number", ["1", "10", "two", "2;id"])
def test_how_many_must_make_sense(root: Machine, number: str) -> None:
    root.must(blocks("deployment.md", "Install")[0])
    refused = root.types(f"cd /opt/order-gateway; sh deploy/install.sh gateway gateway.example '{number}'")
    assert (refused.code, "say how many gateways, 2 to 9" in refused.out) == (1, True), refused
