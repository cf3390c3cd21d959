"""Prints `.env.example`: every setting with its meaning and default, from the classes that read them."""

import sys
import textwrap

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from gateway.cli.settings import CommandSettings
from gateway.settings import Settings
from worker.settings import WorkerSettings
from worker.sites.registry import SiteSettings

PREFIX = "RAKUTEN_"
WIDTH = 100
HEAD = """\
# Every setting with its default. Copy this file to .env and take the comment sign off what you change.
# The environment comes before .env. Nonsense stops the start with a message that names the setting.
"""


def main() -> None:
    """Prints the file."""
    sys.stdout.write(env_example())


def env_example() -> str:
    """The file's text: first what gateway and worker read, then what each reads alone, then what only commands do."""
    gateway, worker, commands = Settings.model_fields, WorkerSettings.model_fields, CommandSettings.model_fields
    shared = gateway.keys() & worker.keys()
    sites = SiteSettings.model_fields.keys()
    known = gateway.keys() | worker.keys()
    sections = {
        "Gateway and worker": {name: field for name, field in gateway.items() if name in shared},
        "Gateway": {name: field for name, field in gateway.items() if name not in shared},
        "Worker": {name: field for name, field in worker.items() if name not in shared | sites},
        "Sites of the worker": {name: field for name, field in worker.items() if name in sites},
        "Commands of order-gateway": {name: field for name, field in commands.items() if name not in known},
    }
    parts = [HEAD]
    for title, fields in sections.items():
        parts.append(f"\n# ---- {title} {'-' * (WIDTH - len(title) - 8)}\n")
        for name, field in fields.items():
            meanings = [field.description or ""]
            if name in shared and worker[name].description != field.description:
                meanings = [f"Gateway: {field.description}", f"Worker: {worker[name].description}"]
            parts += ["\n", *(comment(meaning) for meaning in meanings), f"#{PREFIX}{name.upper()}={default(field)}\n"]
    return "".join(parts)


def comment(text: str) -> str:
    """Lines of a comment."""
    return "".join(f"# {line}\n" for line in textwrap.wrap(text, WIDTH - 2))


def default(field: FieldInfo) -> str:
    """The default as one would write it; nothing where there is none or it depends on the machine."""
    value = field.default
    if value is None or value is PydanticUndefined or field.default_factory is not None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple | frozenset):
        return ",".join(str(item) for item in value)
    return f"{value:g}" if isinstance(value, float) and value.is_integer() and value < 1e6 else str(value)  # noqa: PLR2004


if __name__ == "__main__":
    main()
