"""`python -m tests.hostile.grpc`: every attack in full, and the table of docs/security.md as it comes out here."""

import asyncio
import shutil
import tempfile
from pathlib import Path

from tests.gateway.api.test_auth import make_certificates
from tests.hostile.grpc.attacks import TABLE
from tests.hostile.grpc.siege import attacked


async def main() -> None:
    print("| attack | amount | growth, MiB | slowest honest call, s | open calls |\n|---|---|---|---|---|")
    for row in TABLE:
        folder = Path(tempfile.mkdtemp(prefix="hostile-"))
        try:
            await make_certificates(folder)
            found = await attacked(row, row.many, folder)
        finally:
            shutil.rmtree(folder)
        name = row.name.replace("_", " ")
        print(f"| {name} | {row.many:,} | {found.growth_mib:.0f} | {found.slowest_call:.2f} | {found.open_calls:,} |")


asyncio.run(main())
