"""Who uses the library under `mypy --strict` has types, and is told of mistakes."""

import subprocess
import sys
from pathlib import Path

import pytest

RIGHT = """
import datetime
from ordergateway.client import AsyncClient, Client, NotFoundError, RefusedError, order, verify_callback
from ordergateway.v1 import orders_pb2

def ordered(client: Client) -> list[str]:
    answer = client.submit("po-1", "rakuten", {"items": []}, max_total_yen=5000, labels={"team": "tea"})
    try:
        task: orders_pb2.Task = client.get(answer.task_id)
    except NotFoundError as error:
        wait: datetime.timedelta | None = error.retry_after
        raise SystemExit(f"{error.reason} {error.allowed} {wait}") from error
    for result in client.submit_many([order("po-2", "rakuten", "{}")]):
        print(result.refusal.field)
    for task in client.watch("po-1", timeout=60):
        print(orders_pb2.TaskStatus.Name(task.status))
    return [task.task_id for task in client.list(orders_pb2.TaskFilter(site="rakuten"))]

async def awaited(client: AsyncClient) -> bool:
    answer = await client.submit("po-1", "rakuten", {"items": []})
    async for task in client.watch("po-1"):
        print(task.task_id)
    async for result in client.submit_many([order("po-2", "rakuten", "{}")]):
        print(result.submitted.created)
    return answer.created

callback: str = verify_callback("whsec_", {}, b"").id
refusals: type[Exception] = RefusedError
"""
WRONG = {
    'Client("grpc://localhost").submit("po-1", "rakuten", {}, max_total_yn=5)': "max_total_yn",
    'Client("grpc://localhost").submit("po-1", "rakuten", {}, max_total_yen="5")': "incompatible type",
    'Client("grpc://localhost").get(1)': "incompatible type",
}


def checked(folder: Path, text: str) -> "subprocess.CompletedProcess[str]":
    (folder / "consumer.py").write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={folder / 'cache'}", "consumer.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.timeout(300)
def test_a_strict_consumer(tmp_path: Path) -> None:
    found = checked(tmp_path, RIGHT)
    assert found.returncode == 0, found.stdout + found.stderr
    found = checked(tmp_path, "from ordergateway.client import Client\n" + "\n".join(WRONG))
    lines = [line for line in found.stdout.splitlines() if "error:" in line]
    assert len(lines) == len(WRONG), found.stdout
    assert all(words in line for line, words in zip(lines, WRONG.values(), strict=True)), found.stdout
