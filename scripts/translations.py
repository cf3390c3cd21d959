"""Fails if a translated page is older than its source: it says which sections have changed since, and what to do.

A translation begins with a comment that holds, for each section of its source, a digest of what was translated. It
has the same headings, code, tables and links as its source, in the same order; words and comments in code are its own.
With the names of translations as arguments it writes that comment anew, once they have been brought up to date.
"""

import hashlib
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SOURCES = ("README.md", "docs/runbook.md", "docs/rest.md")
LANGUAGES = ("ja", "zh")

FENCE = re.compile(r"^(```|~~~)")
HEADING = re.compile(r"^(#{1,6}) +(.+?) *$")
LINK = re.compile(r"\]\([^)\s]+\)")
COMMENT = re.compile(r"(^|\s)#(?!!).*$")
RECORD = re.compile(r"\A<!-- .*?-->\n", re.DOTALL)
RECORDED = re.compile(r"^([0-9a-f]{12}) (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Section:
    """A heading with what follows it up to the next one."""

    level: int
    heading: str
    lines: tuple[str, ...]

    @property
    def digest(self) -> str:
        """What stands for its text; where lines are broken does not matter."""
        return hashlib.sha256(" ".join(" ".join(self.lines).split()).encode()).hexdigest()[:12]

    @property
    def code(self) -> tuple[str, ...]:
        """Its code without comments."""
        return tuple(COMMENT.sub("", line).rstrip() for line in _fenced(self.lines) if COMMENT.sub("", line).strip())

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows of tables and how many links it has."""
        prose = "\n".join(self.lines)
        return sum(line.startswith("|") for line in self.lines), len(LINK.findall(prose))


def _fenced(lines: Sequence[str]) -> Iterator[str]:
    inside = False
    for line in lines:
        if FENCE.match(line.strip()):
            inside = not inside
        elif inside:
            yield line


def sections(text: str) -> list[Section]:
    """Splits a page at its headings; equal headings are numbered, so that each has a name of its own."""
    found: list[tuple[int, str, list[str]]] = [(0, "the beginning", [])]
    inside, names = False, Counter[str]()
    for line in RECORD.sub("", text).splitlines():
        inside ^= bool(FENCE.match(line.strip()))
        heading = None if inside else HEADING.match(line)
        if heading is not None:
            names[heading[2]] += 1
            number = f" ({names[heading[2]]})" if names[heading[2]] > 1 else ""
            found.append((len(heading[1]), heading[2] + number, []))
        found[-1][2].append(line)
    return [Section(level, heading, tuple(lines)) for level, heading, lines in found if any(map(str.strip, lines))]


def record(source: Path, text: str) -> str:
    """Returns the comment with which a translation of this text begins."""
    told = "\n".join(f"{section.digest} {section.heading}" for section in sections(text))
    return f"<!-- Translated from {source}; scripts/translations.py tells what has changed there since.\n{told}\n-->\n"


def faults(source: Path, original: str, translation: Path, translated: str) -> Iterator[str]:
    """Yields what is to be done about a translation, a line each."""
    before = {heading: digest for digest, heading in RECORDED.findall((RECORD.match(translated) or [""])[0])}
    now = {section.heading: section.digest for section in sections(original)}
    stale = [f"{translation}: {source} has a new section: {name}" for name in now if name not in before]
    stale += [
        f"{translation}: {source} has changed: {name}" for name in now if before.get(name, now[name]) != now[name]
    ]
    stale += [f"{translation}: {source} has no such section any more: {name}" for name in before if name not in now]
    yield from stale
    if stale:
        yield f"{translation}: bring these up to date, then: python scripts/translations.py {translation}"
        return
    ours, theirs = sections(original), sections(translated)
    if [section.level for section in ours] != [section.level for section in theirs]:
        yield f"{translation}: its headings are not those of {source}, {len(theirs)} where that has {len(ours)}"
        return
    for one, other in zip(ours, theirs, strict=True):
        if one.code != other.code:
            yield f"{translation}: another code than in {source}: {one.heading}"
        if one.shape != other.shape:
            yield f"{translation}: {other.shape} rows of tables and links, {one.shape} in {source}: {one.heading}"


def main(arguments: Sequence[str], root: Path) -> int:
    """Checks every translation, or brings the comments of those that are named up to date; 1 if anything is wrong."""
    found = []
    for source in map(Path, SOURCES):
        original = (root / source).read_text(encoding="utf-8")
        for language in LANGUAGES:
            translation = Path("docs") / language / source.name
            if not (root / translation).is_file():
                found.append(f"{translation}: is missing, the translation of {source}")
                continue
            text = (root / translation).read_text(encoding="utf-8")
            if str(translation) in arguments:
                text = record(source, original) + RECORD.sub("", text)
                (root / translation).write_text(text, encoding="utf-8")
            found += faults(source, original, translation, text)
    sys.stdout.write("".join(f"{line}\n" for line in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(__file__).parents[1]))
