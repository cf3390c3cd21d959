"""docs/nginx.conf on a real nginx, before the gateways of a test."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from demo.programs import free_port
from tests.optional_parts import where_is

DOCUMENTED = Path(__file__).parents[3] / "docs" / "nginx.conf"
_LISTED = ("127.0.0.1:31109", "127.0.0.1:31209"), ("127.0.0.1:31110", "127.0.0.1:31210")


def configuration(folder: Path, port: int, servers: Sequence[tuple[int, int]], faster: int, max_fails: int) -> str:
    """The documented file with this test's addresses (HTTP and gRPC port of each gateway) and its times shortened.

    The comment sign is taken off the line of a second gateway where there is one. With `max_fails` 0 nginx
    tries one that fails again and again.
    """
    text = DOCUMENTED.read_text()
    for number, ports in enumerate(servers):
        for documented, here in zip((listed[number] for listed in _LISTED), ports, strict=True):
            assert f"server {documented} " in text
            text = re.sub(rf"#?server {documented} ", f"server 127.0.0.1:{here} ", text)
    for documented, here_too in (
        ("listen 443", f"listen 127.0.0.1:{port}"),
        ("/etc/ssl/gateway.example/fullchain.pem", f"{folder}/server.pem"),
        ("/etc/ssl/gateway.example/privkey.pem", f"{folder}/server.key"),
        ("/var/log/nginx/order-gateway.log", f"{folder}/access.log"),
    ):
        assert documented in text
        text = text.replace(documented, here_too)
    assert text.count("max_fails=1") == 4
    text = text.replace("max_fails=1", f"max_fails={max_fails}")
    text = re.sub(r"((?:proxy|grpc)_read_timeout) (\d+)s", lambda m: f"{m[1]} {int(m[2]) * 1000 // faster}ms", text)
    places = " ".join(
        f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;" if os.geteuid() == 0 else ""
    return (
        f"{user} daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;\n"
        f"events {{ worker_connections 1024; }}\nhttp {{ {places}\n{text} }}\n"
    )


@asynccontextmanager
async def nginx(
    folder: Path, servers: Sequence[tuple[int, int]], faster: int = 1, max_fails: int = 1
) -> AsyncIterator[int]:
    """Run nginx before gateways; gives its port. See `configuration`."""
    program = where_is("nginx")
    assert program is not None
    port = free_port()
    (folder / "nginx.conf").write_text(configuration(folder, port, servers, faster, max_fails))
    process = await asyncio.create_subprocess_exec(program, "-e", f"{folder}/error.log", "-c", f"{folder}/nginx.conf")
    try:
        async with asyncio.timeout(60):
            while True:
                assert process.returncode is None, (folder / "error.log").read_text()
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except OSError:
                    await asyncio.sleep(0.02)
                else:
                    writer.close()
                    break
        yield port
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
