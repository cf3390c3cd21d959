"""The numbered files that bring a database from one version of its schema to the next."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable


@dataclass(frozen=True, slots=True)
class Migration:
    """One step: it leads to version `number`. `name` is the file's, without its ending."""

    number: int
    name: str
    sql: str


def read(folder: Traversable) -> Sequence[Migration]:
    """Return the migrations of a folder in their order. Raises ValueError where their numbers have a gap."""
    found = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".sql")), key=lambda entry: entry.name)
    first = int(found[0].name[:4])
    for number, entry in enumerate(found, start=first):
        if not entry.name.startswith(f"{number:04d}_"):
            raise ValueError(f"migration {entry.name} should have the number {number:04d}")
    return [
        Migration(number, entry.name.removesuffix(".sql"), entry.read_text("utf-8"))
        for number, entry in enumerate(found, start=first)
    ]
