"""Who may call what, and how tokens are kept (docs/specification.md#access), over gRPC."""

import asyncio
import hmac
import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import grpc
import pytest
from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.descriptor_pool import Default
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from gateway.api.auth.access import ACCESS
from gateway.api.auth.authenticator import EVERY_ROLE, OPEN, Authenticator, Role
from gateway.domain.refusals import Reason, RefusedError
from gateway.settings import Settings
from tests.gateway.support.grpc_api import GrpcApi, RefusedCallError, connected, heartbeat_of, told
from tests.gateway.support.in_process import RunningGateway, running_gateway

TOKENS = {
    "api_token": "api-token-1, api-token-2",
    "upstream_token": "upstream-token",
    "worker_token": "worker-token-1,worker-token-2",
    "operator_token": "operator-token",
    "viewer_token": "viewer-token",
}
OF_ROLE = {
    Role.UPSTREAM: "upstream-token",
    Role.WORKER: "worker-token-1",
    Role.OPERATOR: "operator-token",
    Role.VIEWER: "viewer-token",
}
FILES = ("orders", "order_leases", "account_queries", "query_leases", "catalog", "operations")


def methods() -> Iterator[str]:
    """Every method of the contract."""
    for name in FILES:
        for service in Default().FindFileByName(f"ordergateway/v1/{name}.proto").services_by_name.values():
            for method in service.methods:
                yield f"/{service.full_name}/{method.name}"


STREAMS = {"LeaseOrders", "WatchOrder", "LeaseQueries", "WatchQuery"}


async def reason_of(api: GrpcApi, path: str) -> Reason | None:
    """Why a call without any field is refused; None if it is answered or not served."""
    metadata = api._metadata
    try:
        if path.rpartition("/")[2] in STREAMS:
            stream = api.channel.unary_stream(path)(b"", metadata=metadata)
            await told(stream.read())
            await told(_code(stream))
        else:
            await told(api.channel.unary_unary(path)(b"", metadata=metadata))
    except RefusedCallError as refused:
        return refused.reason
    except grpc.aio.AioRpcError as error:
        if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
            raise
    return None


async def _code(stream: "grpc.aio.UnaryStreamCall[bytes, bytes]") -> None:
    async for _ in stream:
        pass


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[RunningGateway]:
    async with running_gateway(tmp_path, token="api-token-1", **TOKENS) as running:
        yield running


def test_every_method_of_the_contract_stands_in_the_table_and_nothing_else_does() -> None:
    served = set(methods())
    assert len(served) >= 30
    assert {path for path in ACCESS if "reflection" not in path} == served
    assert all(roles and roles <= EVERY_ROLE for roles in ACCESS.values())


def test_what_the_table_must_never_say() -> None:
    """Who reports, leases or clicks is a worker and nobody else; who decides is a person; who files is an upstream."""
    of_workers = {path for path, roles in ACCESS.items() if Role.WORKER in roles and "reflection" not in path}
    of_workers.remove("/ordergateway.v1.OperationsService/GetInfo")  # which contract it is, and nothing more
    assert of_workers == {
        "/ordergateway.v1.OrderLeaseService/LeaseOrders",
        "/ordergateway.v1.OrderLeaseService/RenewLease",
        "/ordergateway.v1.OrderLeaseService/ReportOrder",
        "/ordergateway.v1.OrderLeaseService/RequestSubmitPermit",
        "/ordergateway.v1.OrderLeaseService/ReclaimOrder",
        "/ordergateway.v1.QueryLeaseService/LeaseQueries",
        "/ordergateway.v1.QueryLeaseService/ReportQueryResult",
    }
    assert all(ACCESS[path] == {Role.WORKER} for path in of_workers)
    assert ACCESS["/ordergateway.v1.OperationsService/GetInfo"] == EVERY_ROLE
    assert ACCESS["/ordergateway.v1.OrderService/SubmitOrder"] == {Role.UPSTREAM}
    of_upstreams = {path.rpartition("/")[2] for path, roles in ACCESS.items() if Role.UPSTREAM in roles}
    assert of_upstreams == {
        "SubmitOrder", "SubmitOrders", "GetOrder", "ListOrders", "WatchOrder", "CancelOrder",
        "SubmitQuery", "GetQuery", "ListQueries", "WatchQuery",
        "ListCatalogOrders", "Discover", "GetHealth", "GetInfo", "ServerReflectionInfo",
    }  # fmt: skip
    operations = [path for path in ACCESS if path.startswith("/ordergateway.v1.OperationsService/")]
    shared = {f"/ordergateway.v1.OperationsService/{method}" for method in ("GetHealth", "GetInfo")}
    assert all(ACCESS[path] <= {Role.OPERATOR, Role.VIEWER} for path in operations if path not in shared)


def test_a_viewer_sees_what_an_operator_sees_and_changes_nothing() -> None:
    descriptors = {path: Default().FindMethodByName(path[1:].replace("/", ".")) for path in methods()}
    harmless = {
        path
        for path, method in descriptors.items()
        # A stream that an operator opens tells what happens, and does nothing.
        if method.server_streaming or method.GetOptions().idempotency_level == MethodOptions.NO_SIDE_EFFECTS
    }
    of_operators = {path for path in descriptors if Role.OPERATOR in ACCESS[path]}
    of_viewers = {path for path in descriptors if Role.VIEWER in ACCESS[path]}
    assert of_viewers == of_operators & harmless


async def test_nobody_is_let_in_without_a_token(guarded: RunningGateway) -> None:
    before = guarded.dump()
    async with connected(guarded.port) as api:
        for path in methods():
            assert await reason_of(api, path) is Reason.UNAUTHENTICATED, path
    assert guarded.dump() == before


async def test_every_token_of_a_rotation_is_valid_at_once_and_told_apart_in_the_history(
    guarded: RunningGateway,
) -> None:
    for number, token in enumerate(("api-token-1", "api-token-2", "upstream-token")):
        async with connected(guarded.port, token) as api:
            await api.submit(f"po-{number}")
    actors = [row["actor"] for row in guarded.rows("SELECT actor FROM events ORDER BY sequence")]
    assert actors == ["api", "api#2", "upstream"]


@pytest.mark.parametrize(
    "value",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Bearer api-token-1x",
        "Bearer api-token",
        "Bearer API-TOKEN-1",
        "Bearer api-token-1,api-token-2",
        "Basic api-token-1",
        "api-token-1",
        "Bearerapi-token-1",
        "Token api-token-1",
        "Bearer Bearer api-token-1",
        "Bearer " + "x" * 10_000,
    ],
    ids=lambda value: value[:30] or "empty",
)
def test_a_bad_scheme_or_token_is_refused_without_being_repeated(value: str) -> None:
    authenticator = Authenticator({"api": (EVERY_ROLE, ["api-token-1", "api-token-2"])})
    with pytest.raises(RefusedError) as refused:
        authenticator.identify(value)
    assert refused.value.refusal.reason is Reason.UNAUTHENTICATED
    assert "api-token" not in refused.value.refusal.message


async def test_a_call_with_several_authorizations_is_refused_whichever_of_them_is_valid(
    guarded: RunningGateway,
) -> None:
    async with connected(guarded.port) as api:
        for tokens in (("api-token-1", "wrong"), ("wrong", "api-token-1"), ("api-token-1", "api-token-1")):
            api._metadata = tuple(("authorization", f"Bearer {token}") for token in tokens)
            with pytest.raises(RefusedCallError, match="once; this call has several") as refused:
                await api.health()
            assert (refused.value.status, refused.value.reason) == ("UNAUTHENTICATED", Reason.UNAUTHENTICATED)


@pytest.mark.parametrize("value", ["Bearer secret", "bearer secret", "BEARER secret", "Bearer  secret "])
def test_the_scheme_s_case_and_spaces_do_not_matter(value: str) -> None:
    assert Authenticator({"api": (EVERY_ROLE, ["secret"])}).identify(value).name == "api"


SECRET = "s3cret-of-16-chars"


@pytest.mark.parametrize(
    ("configured", "sent", "name"),
    [
        (f"alice={SECRET}", SECRET, "alice"),
        (f"a1_-={SECRET}==", f"{SECRET}==", "a1_-"),
        (f"{'a' * 32}={SECRET}", SECRET, "a" * 32),
        (f"{'a' * 33}={SECRET}", f"{'a' * 33}={SECRET}", "operator"),
        (f"Alice={SECRET}", f"Alice={SECRET}", "operator"),
        (f"1st={SECRET}", f"1st={SECRET}", "operator"),
        ("alice=fifteen-letters", "alice=fifteen-letters", "operator"),
        ("c2VjcmV0LW9mLWEtdG9rZW4==", "c2VjcmV0LW9mLWEtdG9rZW4==", "operator"),
    ],
)
def test_a_token_may_have_a_name(configured: str, sent: str, name: str) -> None:
    roles = frozenset({Role.OPERATOR})
    authenticator = Authenticator({"operator": (roles, [configured, "second"])})
    found = authenticator.identify(f"Bearer {sent}")
    assert (found.name, found.roles) == (name, roles)
    assert authenticator.identify("Bearer second").name == "operator#2"
    if sent != configured:
        with pytest.raises(RefusedError):
            authenticator.identify(f"Bearer {configured}")


def test_a_name_of_the_gateway_s_own_is_refused_and_a_short_secret_is_warned_of() -> None:
    with pytest.raises(ValueError, match="the name gateway is the gateway's own") as refusal:
        Settings(_env_file=None, operator_token=(f"gateway={SECRET}",))  # type: ignore[call-arg,arg-type]
    assert SECRET not in str(refusal.value)
    settings = Settings(_env_file=None, operator_token=("alice=short",))  # type: ignore[call-arg,arg-type]
    (line,) = [line for line in settings.unusual() if "looks like name=secret" in line]
    assert line.startswith("RAKUTEN_OPERATOR_TOKEN: ")
    assert "short" not in line


def test_a_viewer_s_token_that_could_do_more_is_refused() -> None:
    with pytest.raises(ValueError, match="RAKUTEN_VIEWER_TOKEN: a token of it stands in another list too") as refusal:
        Settings(_env_file=None, operator_token=(f"alice={SECRET}",), viewer_token=("x", f"eve={SECRET}"))  # type: ignore[call-arg,arg-type]
    assert SECRET not in str(refusal.value)


def test_without_any_token_everybody_is_let_in() -> None:
    assert Authenticator({"api": (EVERY_ROLE, [])}).identify(None) is OPEN


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "gateway.example"])  # noqa: S104 - it is refused
def test_without_any_token_only_loopback_is_served(host: str) -> None:
    with pytest.raises(ValueError, match="RAKUTEN_GATEWAY_HOST"):
        Settings(_env_file=None, gateway_host=host)  # type: ignore[call-arg]
    Settings(_env_file=None, gateway_host=host, api_token=("a-token",))  # type: ignore[call-arg,arg-type]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.9.9.9"])
def test_loopback_needs_no_token(host: str) -> None:
    Settings(_env_file=None, gateway_host=host)  # type: ignore[call-arg]


def test_tokens_are_compared_in_constant_time_and_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bytes] = []
    real = hmac.compare_digest

    def compare(known: bytes, given: bytes) -> bool:
        compared.append(known)
        return real(known, given)

    authenticator = Authenticator(
        {"api": (EVERY_ROLE, ["one", "two"]), "worker": (frozenset({Role.WORKER}), ["three"])}
    )
    monkeypatch.setattr(hmac, "compare_digest", compare)
    assert authenticator.identify("Bearer one").name == "api"
    assert compared == [b"one", b"two", b"three"]


async def test_health_is_open_and_reflection_is_for_those_with_a_role(guarded: RunningGateway) -> None:
    async with connected(guarded.port) as api:
        health = await health_pb2_grpc.HealthStub(api.channel).Check(health_pb2.HealthCheckRequest())
        assert health.status == health_pb2.HealthCheckResponse.SERVING

        async def services(metadata: tuple[tuple[str, str], ...]) -> list[str]:
            stub = reflection_pb2_grpc.ServerReflectionStub(api.channel)
            stream = stub.ServerReflectionInfo(metadata=metadata)

            async def ask() -> reflection_pb2.ServerReflectionResponse:
                await stream.write(reflection_pb2.ServerReflectionRequest(list_services=""))
                return await stream.read()

            answer = await told(ask())  # a refusal may come before the question is written
            await stream.done_writing()
            return [service.name for service in answer.list_services_response.service]

        with pytest.raises(RefusedCallError) as refused:
            await services(())
        assert refused.value.reason is Reason.UNAUTHENTICATED
        assert "ordergateway.v1.OrderService" in await services((("authorization", "Bearer worker-token-2"),))


async def test_no_token_and_no_lease_token_is_in_any_log_line_event_or_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    said = []
    async with running_gateway(tmp_path, token="api-token-1", **TOKENS) as guarded:
        api = guarded.api
        lease = await api.take()
        stream = api.stream("w2", wait=10)
        await heartbeat_of(stream)
        stream.cancel()
        for call in (
            api.renew(lease, "w2"),
            api.report(lease, worker_id="w2"),
            api.permit(lease, journal_id="another-journal-1"),
            api.reclaim(),
            api.submit("lease"),
        ):
            with pytest.raises(RefusedCallError) as refused:
                await call
            said.append(str(refused.value))
        async with connected(guarded.port, "wrong-token-9") as stranger:
            with pytest.raises(RefusedCallError) as refused:
                await stranger.health()
            said.append(str(refused.value))
        said += [str(await api.task()), str(await api.list()), str(await api.health())]
        stored = {table: rows for table, rows in guarded.dump().items() if table != "leases"}
        said.append(str(stored))
    text = caplog.text + "".join(said)
    for secret in ("api-token-1", "api-token-2", "worker-token", "upstream-token", "wrong-token", lease.lease_token):
        assert secret not in text


# TLS.


async def openssl(folder: Path, *arguments: str) -> None:
    process = await asyncio.create_subprocess_exec(
        "openssl", *arguments, cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()


@pytest.fixture
async def certificates(tmp_path: Path) -> Path:
    """See make_certificates."""
    await make_certificates(tmp_path)
    return tmp_path


async def make_certificates(tmp_path: Path) -> None:
    """ca, server and client: name.key and name.pem; the CA has signed both. `other` is a CA that signed nothing."""
    ec = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    for name in ("ca", "other"):
        await openssl(
            tmp_path,
            "req",
            "-x509",
            *ec,
            "-subj",
            f"/CN={name}",
            "-days",
            "2",
            "-addext",
            "keyUsage=critical,keyCertSign,cRLSign",
            "-keyout",
            f"{name}.key",
            "-out",
            f"{name}.pem",
        )
    # Python 3.13 checks strictly: a CA says what its key is for, a certificate which key has signed it.
    (tmp_path / "signed.ext").write_text("authorityKeyIdentifier=keyid\n")
    for name in ("server", "client"):
        await openssl(tmp_path, "req", *ec, "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost",
                      "-keyout", f"{name}.key", "-out", f"{name}.csr")  # fmt: skip
        await openssl(
            tmp_path,
            "x509",
            "-req",
            "-in",
            f"{name}.csr",
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-days",
            "2",
            "-CAcreateserial",
            "-copy_extensions",
            "copy",
            "-extfile",
            "signed.ext",
            "-out",
            f"{name}.pem",
        )


async def health_over_tls(port: int, folder: Path, ca: str, client: str | None = None) -> str:
    """Ask for the gateway's health; return OK or the status name."""
    credentials = grpc.ssl_channel_credentials(
        (folder / f"{ca}.pem").read_bytes(),
        None if client is None else (folder / f"{client}.key").read_bytes(),
        None if client is None else (folder / f"{client}.pem").read_bytes(),
    )
    async with grpc.aio.secure_channel(f"localhost:{port}", credentials) as channel:
        try:
            await asyncio.wait_for(GrpcApi(channel, "api-token-1").health(), 60)
        except grpc.aio.AioRpcError as error:
            return error.code().name
    return "OK"


@pytest.mark.needs("openssl")
async def test_tls_serves_those_who_trust_its_ca_and_nobody_in_plain_text(certificates: Path) -> None:
    files = {"gateway_tls_cert": certificates / "server.pem", "gateway_tls_key": certificates / "server.key"}
    async with running_gateway(certificates, api_token="api-token-1", **files) as running:
        assert await health_over_tls(running.port, certificates, "ca") == "OK"
        assert await health_over_tls(running.port, certificates, "other") == "UNAVAILABLE"
        with pytest.raises(grpc.aio.AioRpcError) as plain:
            await running.api.health()
        assert plain.value.code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.needs("openssl")
async def test_mutual_tls_serves_those_who_show_a_certificate_of_the_ca(certificates: Path) -> None:
    files = {
        "gateway_tls_cert": certificates / "server.pem",
        "gateway_tls_key": certificates / "server.key",
        "gateway_tls_client_ca": certificates / "ca.pem",
    }
    async with running_gateway(certificates, api_token="api-token-1", **files) as running:
        assert await health_over_tls(running.port, certificates, "ca", "client") == "OK"
        assert await health_over_tls(running.port, certificates, "ca") == "UNAVAILABLE"
        assert await health_over_tls(running.port, certificates, "ca", "other") == "UNAVAILABLE"
