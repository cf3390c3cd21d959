"""A reference that leads nowhere fails `make lint`, wherever it stands; one that leads somewhere does not."""

import subprocess
import sys
from pathlib import Path

import pytest

CHECK = Path(__file__).parents[2] / "scripts/check_references.py"

pytestmark = pytest.mark.needs("git")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    for name, text in {
        "docs/rules.md": "# Rules\n\n## The `one` rule\n\n```\n# no heading\n```\n",
        "gateway/orders/lease.py": "",
        "gateway/__main__.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def check(tree: Path, name: str, text: str) -> tuple[int, str]:
    """What the check says of the tree with one more file: its exit status and output."""
    (tree / name).write_text(text)
    result = subprocess.run([sys.executable, CHECK], cwd=tree, capture_output=True, text=True, check=False)
    return result.returncode, result.stdout


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "docs/page.md",
            "[a](rules.md#the-one-rule), [b](../gateway/), [c](#here), [d](https://host/x.md#y)\n# Here\n",
        ),
        (
            "docs/page.md",
            "a link over [two\nlines](rules.md); `orders/lease.py`, `gateway/orders`, `python -m gateway`\n",
        ),
        ("CHANGELOG.md", "`gateway/orders/gone.py` was there once\n"),
        ("gateway/a.py", '"""The rule: docs/rules.md#the-one-rule, see lease.py."""\nx = "docs/gone.md"\n'),
        ("gateway/a.proto", '// See docs/rules.md.\nimport "google/protobuf/timestamp.proto";\n'),
    ],
)
def test_what_leads_somewhere_passes(tree: Path, name: str, text: str) -> None:
    assert check(tree, name, text) == (0, "")


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("docs/page.md", "[a](gone.md)", "no target gone.md"),
        ("docs/page.md", "[a](rules.md#another-rule)", "no target rules.md#another-rule"),
        ("docs/page.md", "[a](rules.md#no-heading)", "no target rules.md#no-heading"),
        ("docs/page.md", "`gateway/orders/gone.py`", "no file gateway/orders/gone.py"),
        ("docs/page.md", "the package `gateway/gone` does it", "no folder gateway/gone"),
        ("docs/page.md", "python -m gateway.gone", "no module gateway.gone"),
        ("CHANGELOG.md", "[a](gone.md)", "no target gone.md"),
        ("gateway/a.py", '"""The rule: docs/rules.md#another-rule."""', "no anchor docs/rules.md#another-rule"),
        ("gateway/a.py", 'def f():\n    """See docs/gone.md."""', "no file docs/gone.md"),
        ("gateway/a.py", "x = 1  # as gone.py does", "no file gone.py"),
        ("gateway/a.py", '"""A rule (specification, section 4)."""', "name a rule by its anchor"),
        ("gateway/a.proto", "// See docs/gone.md.", "no file docs/gone.md"),
        ("gateway/a.sh", "sh scripts/gone.sh", "no file scripts/gone.sh"),
    ],
)
def test_what_leads_nowhere_is_named_with_its_line(tree: Path, name: str, text: str, fault: str) -> None:
    status, output = check(tree, name, f"\n{text}\n")
    assert status == 1
    assert output.count("\n") == 1, output
    assert output.startswith(f"{name}:{text.count(chr(10)) + 2}: {fault}")
