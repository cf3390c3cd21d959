"""The check of translations: it notices what has changed in a source, says where, and what to do."""

from pathlib import Path

import pytest

from scripts import translations

SOURCE = """# The page

Words with a [link](other.md).

## Do this

```sh
order-gateway health   # how it is
```

| a | b |
|---|---|
| 1 | 2 |

## Then that

More words.
"""
TRANSLATION = """# Der Bogen

Wörter mit einem [Verweis](../other.md).

## Dies tun

```sh
order-gateway health   # wie es steht
```

| a | b |
|---|---|
| 1 | 2 |

## Dann jenes

Mehr Wörter.
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(translations, "SOURCES", ("page.md",))
    monkeypatch.setattr(translations, "LANGUAGES", ("de",))
    (tmp_path / "docs/de").mkdir(parents=True)
    (tmp_path / "page.md").write_text(SOURCE)
    (tmp_path / "docs/de/page.md").write_text(TRANSLATION)
    assert translations.main(["docs/de/page.md"], tmp_path) == 0
    return tmp_path


def told(root: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What the check prints."""
    capsys.readouterr()
    code = translations.main([], root)
    lines = capsys.readouterr().out.splitlines()
    assert code == (1 if lines else 0)
    return lines


def change(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


def test_what_is_up_to_date_is_in_order(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(root, capsys) == []
    change(root / "page.md", "Words with a", "Words\nwith a")
    assert told(root, capsys) == [], "where a line is broken is no change"


def test_a_change_of_the_source_is_told_by_its_section(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(root / "page.md", "More words", "Other words")
    assert told(root, capsys) == [
        "docs/de/page.md: page.md has changed: Then that",
        "docs/de/page.md: bring these up to date, then: python scripts/translations.py docs/de/page.md",
    ]
    assert translations.main(["docs/de/page.md"], root) == 0
    assert told(root, capsys) == []


def test_sections_that_come_and_go(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(root / "page.md", "## Then that", "## At last")
    assert told(root, capsys)[:2] == [
        "docs/de/page.md: page.md has a new section: At last",
        "docs/de/page.md: page.md has no such section any more: Then that",
    ]


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("order-gateway health", "order-gateway decisions", "another code than in page.md: Do this"),
        ("| 1 | 2 |\n", "", "2 rows of tables"),
        ("## Dann jenes\n", "", "its headings are not those of page.md, 2 where that has 3"),
        ("[Verweis](../other.md)", "Verweis", "(0, 0) rows of tables and links, (0, 1) in page.md: The page"),
    ],
)
def test_a_translation_says_all_that_its_source_says(
    root: Path, capsys: pytest.CaptureFixture[str], before: str, after: str, words: str
) -> None:
    change(root / "docs/de/page.md", before, after)
    assert words in " ".join(told(root, capsys)).replace("(2, 0) rows", "2 rows")


def test_one_that_is_missing_is_told(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "docs/de/page.md").unlink()
    assert told(root, capsys) == ["docs/de/page.md: is missing, the translation of page.md"]
