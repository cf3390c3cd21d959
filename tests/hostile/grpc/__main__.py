"""`python -m tests.hostile.grpc [NAME…]`: attacks in full, and the table of docs/security.md as it comes out here."""

import asyncio
import shutil
import sys
import tempfile
from pathlib import Path

from tests.gateway.api.test_auth import make_certificates
from tests.hostile.grpc.attacks import TABLE
from tests.hostile.grpc.flood import attacked


async def main() -> None:
    print("| attack | amount | growth, MiB | slowest honest call, s | open calls |\n|---|---|---|---|---|")
    wanted = sys.argv[1:]
    for row in (row for row in TABLE if row.name in wanted or not wanted):
        folder = Path(tempfile.mkdtemp(prefix="hostile-"))
        try:
            await make_certificates(folder)
            found = await attacked(row, row.many, folder)
        finally:
            shutil.rmtree(folder)
        name = row.name.replace("_", " ")
        lists = f", lists {found.slowest_list:.1f}" if row.spares_its_token else ""
        print(
            f"| {name} | {row.many:,} | {found.growth_mib:.0f} | {found.slowest_call:.2f}{lists} "
            f"| {found.open_calls:,} |",
            flush=True,
        )


asyncio.run(main())
