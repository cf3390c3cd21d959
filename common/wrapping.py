"""Breaking lines between words, never inside one."""

from collections.abc import Iterator

from rich.cells import cell_len


def wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a text, at most `width` cells each; a longer word stays whole and is a line of its own."""
    return [line for paragraph in text.split("\n") for line in _lines(paragraph, width)]


def longest_word(text: str) -> int:
    """Return the cells that the longest word takes."""
    return max((cell_len(word) for word in text.split()), default=0)


def _lines(paragraph: str, width: int) -> Iterator[str]:
    first, *others = paragraph.split(" ")
    line = first
    for word in others:
        if cell_len(line) + 1 + cell_len(word) <= width:
            line += f" {word}"
        else:
            yield line
            line = word
    yield line
