"""The load of account queries, and the database that it is run on."""

from pathlib import Path

import grpc
import pytest
from ordergateway.v1 import order_leases_pb2_grpc, orders_pb2_grpc

from bench import query_load
from bench.load import Client
from bench.query_backlog import fill_queries
from tests.gateway.support.in_process import running_gateway


async def test_the_load_takes_turns_over_databases_that_hold_what_they_should(tmp_path: Path) -> None:
    (tmp_path / "few").mkdir()
    (tmp_path / "more").mkdir()
    fill_queries(tmp_path / "few" / "gateway.db", ended=50, queued=60)
    fill_queries(tmp_path / "more" / "gateway.db", ended=500, queued=60)
    async with (
        running_gateway(tmp_path / "few") as few,
        running_gateway(tmp_path / "more") as more,
        grpc.aio.insecure_channel(f"127.0.0.1:{few.port}") as to_few,
        grpc.aio.insecure_channel(f"127.0.0.1:{more.port}") as to_more,
    ):
        targets = [query_load.Queries(to_few), query_load.Queries(to_more)]
        for measured in (await query_load.list_(targets, 2), await query_load.lease(targets, 3)):
            assert [len(times) for times in measured] == [len(measured[0])] * 2
            assert all(time > 0 for times in measured for time in times)
        counts = more.rows("SELECT status, count FROM query_counts WHERE count > 0 ORDER BY status")
        assert counts == [{"status": "queued", "count": 57}, {"status": "succeeded", "count": 503}]


@pytest.mark.extended
async def test_each_queue_is_measured_alone_and_beside_the_other(tmp_path: Path) -> None:
    async with (
        running_gateway(tmp_path) as gateway,
        grpc.aio.insecure_channel(f"127.0.0.1:{gateway.port}") as channel,
    ):
        orders = Client(orders_pb2_grpc.OrderServiceStub(channel), order_leases_pb2_grpc.OrderLeaseServiceStub(channel))
        measured = await query_load.beside(orders, query_load.Queries(channel), 0.1)
    assert all(rate > 0 for rates in measured.values() for rate in rates)
