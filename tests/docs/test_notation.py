"""NOTATION.md is an index: its modules are there, and its names are words of them."""

from __future__ import annotations

import re

import pytest
from code_blocks import ROOT

CODE = re.compile(r"`([^`]+)`")


def rows() -> list[tuple[str, list[str], list[str]]]:
    """Symbol, code spans and modules of every row of the tables."""
    found = []
    for line in (ROOT / "NOTATION.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 6 and cells[0] != "symbol" and set(cells[0]) != {"-"}:
            found.append((cells[0], CODE.findall(cells[1]), CODE.findall(cells[5])))
    return found


def text(module: str) -> str:
    """The source of a module: room and name, or a name at the root; shapes stand at the top."""
    places = (ROOT / "implicit_geom", ROOT)
    paths = [place / f"{module.replace('.', '/')}.py" for place in places]
    (path,) = [path for path in paths if path.exists()] or [None]
    assert path is not None, f"`{module}` is not there"
    return path.read_text()


@pytest.mark.parametrize(("symbol", "code", "modules"), rows(), ids=[row[0] for row in rows()])
def test_rows(symbol: str, code: list[str], modules: list[str]) -> None:
    """Every module of a row exists; every name in backquotes is a word of one of them."""
    assert modules, f"{symbol}: no module"
    words = {word for module in modules for word in re.findall(r"[A-Za-z_]\w*", text(module))}
    named = {word for span in code for word in re.findall(r"[A-Za-z_]\w*", span)}
    assert named, f"{symbol}: no name"
    assert named - words == set()


def test_tables() -> None:
    """Every line of a table is a row that is looked at."""
    lines = (ROOT / "NOTATION.md").read_text().splitlines()
    tables = sum(line.startswith("| symbol ") for line in lines)
    assert len(rows()) == sum(line.startswith("|") for line in lines) - 2 * tables > 40
