"""The README shows the example as it is, and its links lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(ROOT.glob("docs/**/*.md"))


def test_the_example_is_the_file() -> None:
    shown = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert shown
    assert (ROOT / "examples/submit.py").read_text().endswith(shown[1])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    code = "".join(
        part for page in PAGES for part in re.findall(r"```sh\n.*?```|`[^`\n]+`", page.read_text(), re.DOTALL)
    )
    named = set(re.findall(r"(?:`|\n)make ([a-z]+)", code))
    assert {"demo", "test"} <= named <= targets
