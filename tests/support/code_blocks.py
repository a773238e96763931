"""Fenced code blocks of Markdown files: where they are, what language they are in, what they hold."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))
FENCE = re.compile(r"^( *)(```+|~~~+) *(.*)$")


@dataclass(frozen=True)
class Block:
    """A fenced block; `line` is that of its fence."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """The blocks of a page in their order; one that is not closed is an error."""
    found: list[Block] = []
    begin, fence, language, lines = 0, "", "", [""]
    for number, line in enumerate(page.read_text().splitlines(), 1):
        match = FENCE.match(line)
        if not fence and match:
            begin, (indent, fence, language), lines = number, match.groups(), []
            width = len(indent)
        elif fence and line.strip() == fence:
            found.append(Block(page, begin, language.strip(), "\n".join(lines) + "\n"))
            fence = ""
        elif fence:
            lines.append(line[width:] if not line[:width].strip() else line)
    if fence:
        raise ValueError(f"{page}:{begin}: the block is not closed")
    return found


def prose(page: Path) -> str:
    """The text of a page without its fenced blocks."""
    text = page.read_text()
    return re.sub(r"^ *(```+|~~~+).*?^ *\1 *$", "", text, flags=re.M | re.S)


def links(page: Path) -> list[str]:
    """Targets of the links and images of a page."""
    return re.findall(r"\]\(([^)\s]+)\)", prose(page))


def anchors(page: Path) -> set[str]:
    """The headings of a page as the fragments of links: lower case, words joined by hyphens."""
    headings = re.findall(r"^#+ +(.*)$", prose(page), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
