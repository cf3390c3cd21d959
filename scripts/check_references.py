"""Fails if a reference leads nowhere: a link or anchor of Markdown, or a file or module that text or a comment names.

Checked are Markdown, the docstrings and comments of Python, and other text files. A path counts as found as it is
written, beside the file that names it, or at the end of a longer path: a page about the gateway may write
`orders/submit.py`. The changelog describes former trees, so only its links are checked.
"""

import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TOP = (
    "bench|clients|common|conformance|demo|deploy|docs|examples|gateway|proto|requirements|sandbox_shop|scripts|tests|"
    "worker"
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
FILE = re.compile(r"(?<![\w./*$-])((?:\.\./)*(?:[\w-]+/)*[\w-][\w.-]*\.(?:py|md|proto|sql|sh))\b(#[\w-]+)?")
FOLDER = re.compile(rf"(?<![\w./$-])((?:{TOP})/(?:[\w-]+/)*[\w-]+)/?(?![\w./*-]|…)")
MODULE = re.compile(rf"\bpython\d? -m ((?:{TOP})(?:\.\w+)*)")
NUMBERED = re.compile(r"\b(?:specification|design), (?:sections?|decisions?) \d", re.IGNORECASE)
# Addresses, placeholders, and the files of protobuf itself.
ELSEWHERE = re.compile(r"\b[a-z][a-z+]*://\S+|\S*[<{]\w*[>}]\S*|\bgoogle/protobuf/\S+")
TEXT = {".py", ".md", ".proto", ".sql", ".sh", ".toml", ".yaml", ".yml", ".service", ".timer", ".env", ""}
STATEMENT_BEGINS_AFTER = {tokenize.INDENT, tokenize.DEDENT, tokenize.NEWLINE, tokenize.ENCODING}


def tracked_files() -> list[Path]:
    """Returns the files that are committed or about to be, as scripts/check_tree.py does."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - fixed words, git of the PATH
    return [path for name in listing.stdout.decode().split("\0") if name and (path := Path(name)).is_file()]


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yields the numbered lines of a file in which references are looked for."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield from enumerate(text.splitlines(), 1)
        return
    before = tokenize.ENCODING
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        docstring = token.type == tokenize.STRING and before in STATEMENT_BEGINS_AFTER
        if docstring or token.type == tokenize.COMMENT:
            yield from enumerate(token.string.splitlines(), token.start[0])
        if token.type not in {tokenize.COMMENT, tokenize.NL}:
            before = token.type


@cache
def anchors(page: Path) -> frozenset[str]:
    """Returns the anchors that GitHub makes of the headings of a Markdown page."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings)


class Tree:
    """The files that a reference may lead to."""

    def __init__(self, files: list[Path]) -> None:
        self._folders = {str(folder) for file in files for folder in file.parents}
        # The shortest path wins: README.md is the one at the root.
        self._ends: dict[str, Path] = {}
        for file in sorted(files, key=lambda file: len(file.parts)):
            for start in range(len(file.parts)):
                self._ends.setdefault("/".join(file.parts[start:]), file)

    def faults(self, file: Path) -> Iterator[str]:
        """Yields what leads nowhere in one file, a line each."""
        for number, line in prose(file):
            for fault in self._faults(file, line):
                yield f"{file}:{number}: {fault}"

    def _faults(self, file: Path, line: str) -> Iterator[str]:
        if file.suffix == ".md":
            for target in LINK.findall(line):
                yield from self._link(file, target)
            line = LINK.sub("", line)
        if file.name == "CHANGELOG.md":
            return
        line = ELSEWHERE.sub("", line)
        for path, anchor in FILE.findall(line):
            found = beside if (beside := file.parent / path).is_file() else self._ends.get(path)
            if not found:
                yield f"no file {path}"
            elif anchor and anchor[1:] not in anchors(found):
                yield f"no anchor {path}{anchor}"
        for path in FOLDER.findall(FILE.sub("", line)):
            if path not in self._folders and path not in self._ends:
                yield f"no folder {path}"
        for module in MODULE.findall(line):
            names = (f"{module.replace('.', '/')}{end}" for end in (".py", "/__main__.py"))
            if not any(name in self._ends for name in names):
                yield f"no module {module}"
        if NUMBERED.search(line):
            yield "name a rule by its anchor, such as docs/specification.md#submit-permit"

    def _link(self, file: Path, target: str) -> Iterator[str]:
        if "://" in target or target.startswith("mailto:"):
            return
        path, _, anchor = target.partition("#")
        page = file.parent / path if path else file
        if not page.exists() or (anchor and anchor not in anchors(page)):
            yield f"no target {target}"


def main() -> int:
    """Checks the whole tree and prints what it finds; 1 if anything."""
    files = tracked_files()
    tree = Tree(files)
    written = (file for file in files if file.suffix in TEXT and file.parts[0] != "generated")
    found = [fault for file in written for fault in tree.faults(file)]
    sys.stdout.write("".join(f"{fault}\n" for fault in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
