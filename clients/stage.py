"""The real programs that the clients are run against, and the variables by which a client is told where they are.

ORDER_GATEWAY_GRPC           host:port of the gRPC port
ORDER_GATEWAY_HTTP           http://host:port: Connect, and a page's own origin
ORDER_GATEWAY_TOKEN          an upstream's token
ORDER_GATEWAY_WORKER_TOKEN   a worker's
ORDER_GATEWAY_TLS_GRPC       host:port of another gateway, whose certificate a CA of its own has signed
ORDER_GATEWAY_TLS_HTTP       https://host:port of that one
ORDER_GATEWAY_CA             file (PEM) with that CA
ORDER_GATEWAY_LOSSY_GRPC     host:port of the first gateway, through a proxy that loses answers (lossy.py)
ORDER_GATEWAY_LOSSY_HTTP     http://host:port, the same
ORDER_GATEWAY_SHOP           http://host:port of the sandbox shop
"""

import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from clients.lossy import lossy_proxy
from demo.programs import Program, entry_point, serves_grpc, started

UPSTREAM_TOKEN, WORKER_TOKEN = "an-upstream-token-of-the-clients", "a-worker-token-of-the-clients"
GATEWAY_SETTINGS = {
    "RAKUTEN_SITES": "sandbox,rakuten",  # nobody serves the second one: what is filed there stays queued
    "RAKUTEN_LEASE_SCOPE": "account",  # the example workers have an account each
    "RAKUTEN_UPSTREAM_TOKEN": UPSTREAM_TOKEN,
    "RAKUTEN_WORKER_TOKEN": WORKER_TOKEN,
    "RAKUTEN_GATEWAY_PORT": "0",
    "RAKUTEN_GATEWAY_GRPC_PORT": "0",
}


@contextmanager
def running_stage(folder: Path) -> Iterator[dict[str, str]]:
    """Starts gateway, gateway with TLS, shop, worker and proxies on ports that are free; yields the variables.

    Raises demo.programs.ProgramError where one of them does not come up.
    """
    make_certificates(folder)
    with ExitStack() as stack:
        grpc, http = stack.enter_context(gateway(folder, "gateway", {}))
        tls = {
            "RAKUTEN_GATEWAY_TLS_CERT": str(folder / "server.pem"),
            "RAKUTEN_GATEWAY_TLS_KEY": str(folder / "server.key"),
        }
        tls_grpc, tls_http = stack.enter_context(gateway(folder, "gateway-tls", tls))
        sandbox = [entry_point("order-worker"), "sandbox", "--port", "0"]
        shop = stack.enter_context(started("shop", sandbox, {}, folder=folder))
        (shop_port,) = told(shop, r"http://127\.0\.0\.1:(\d+)", 1)
        settings = {
            "RAKUTEN_ORDER_GATEWAY_URL": f"grpc://127.0.0.1:{grpc}",
            "RAKUTEN_WORKER_TOKEN": WORKER_TOKEN,
            "RAKUTEN_SANDBOX_URL": f"http://127.0.0.1:{shop_port}",
            "RAKUTEN_SCREENSHOTS": "false",
        }
        stack.enter_context(started("worker", [entry_point("order-worker"), "run"], settings, folder=folder))
        yield {
            "ORDER_GATEWAY_GRPC": f"127.0.0.1:{grpc}",
            "ORDER_GATEWAY_HTTP": f"http://127.0.0.1:{http}",
            "ORDER_GATEWAY_TOKEN": UPSTREAM_TOKEN,
            "ORDER_GATEWAY_WORKER_TOKEN": WORKER_TOKEN,
            "ORDER_GATEWAY_TLS_GRPC": f"localhost:{tls_grpc}",
            "ORDER_GATEWAY_TLS_HTTP": f"https://localhost:{tls_http}",
            "ORDER_GATEWAY_CA": str(folder / "ca.pem"),
            "ORDER_GATEWAY_LOSSY_GRPC": f"127.0.0.1:{stack.enter_context(lossy_proxy(int(grpc)))}",
            "ORDER_GATEWAY_LOSSY_HTTP": f"http://127.0.0.1:{stack.enter_context(lossy_proxy(int(http)))}",
            "ORDER_GATEWAY_SHOP": f"http://127.0.0.1:{shop_port}",
        }


@contextmanager
def gateway(folder: Path, name: str, settings: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Starts a gateway with a database of its own; yields its ports for gRPC and for HTTP."""
    home = folder / name
    home.mkdir()
    command = [entry_point("order-gateway"), "serve"]
    with started(name, command, GATEWAY_SETTINGS | settings, folder=home) as program:
        grpc, http = told(program, r"(?:gRPC|HTTP) on port (\d+)", 2)
        if not settings:
            program.wait_until(lambda: serves_grpc(f"127.0.0.1:{grpc}"))
        yield grpc, http


def told(program: Program, words: str, times: int) -> list[str]:
    """What a program has written in the place of the group, once it has done so so many times."""

    def found() -> list[str]:
        return re.findall(words, program.log.read_text(errors="replace"))

    program.wait_until(lambda: len(found()) >= times)
    return found()


def make_certificates(folder: Path) -> None:
    """ca.pem, and server.pem with server.key for localhost, which that CA has signed; good for two days."""
    (folder / "server.ext").write_text("authorityKeyIdentifier=keyid\nsubjectAltName=DNS:localhost\n")
    key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
    for line in (
        f"req -x509 {key} -subj /CN=ca -days 2 -addext keyUsage=critical,keyCertSign -keyout ca.key -out ca.pem",
        f"req {key} -subj /CN=server -keyout server.key -out server.csr",
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile server.ext -out server.pem",
    ):
        subprocess.run(["openssl", *line.split()], cwd=folder, check=True, capture_output=True)  # noqa: S607
