"""Text files that others wrote: regular files of bounded size, and TOML of bounded depth.

Python's reader of TOML keeps a table for every beginning of a dotted key, so that a key of 30,000 names takes
gigabytes, and it follows brackets by recursion. What is too deep is refused before it is read.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any

from implicit_geom.interface.errors import SceneError

LARGEST_FILE = 4_000_000  # bytes: a scene of 10,000 bodies; read in some seconds
MOST_NAMES = 16  # joined by dots in a key; the deepest path of a scene file has five
MOST_BRACKETS = 40  # open at one place; a shape within a shape takes two

KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
TOKEN = re.compile(
    r'(?P<text>"""(?:[^\\]|\\.)*?"""|\'\'\'.*?\'\'\')'
    r"|(?P<name>\"(?:[^\"\\\n]|\\[^\n])*\"|'[^'\n]*'|[A-Za-z0-9_-]+)"
    r"|(?P<comment>#[^\n]*)|(?P<dot>\.)|(?P<space>[ \t]+)|(?P<open>[\[{])|(?P<close>[\]}])|(?P<other>.)",
    re.DOTALL,
)


def read_text(source: str | Path, *, largest: int = LARGEST_FILE) -> str:
    """The text of a regular file; pipes, devices and directories are refused, not waited for."""
    if "\0" in str(source):
        raise SceneError(f"{source}: cannot be read: not the name of a file")
    try:
        # without waiting: opening a pipe would stand still until somebody writes to it
        handle = os.open(source, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        kind = stat.S_IFMT(os.fstat(handle).st_mode)
        try:
            if kind != stat.S_IFREG:
                what = KINDS.get(kind, "no regular file")
                raise SceneError(f"{source}: cannot be read: is {what}; give the name of a text file")
            with os.fdopen(handle, "rb", closefd=False) as file:
                content = file.read(largest + 1)
        finally:
            os.close(handle)
    except OSError as error:
        raise SceneError(f"{source}: cannot be read: {error.strerror or error}") from None
    if len(content) > largest:
        raise SceneError(
            f"{source}: has more than {largest / 1e6:g} MB; split it, or build the scene in Python"
        )
    try:
        return content.decode("utf-8-sig")  # (some editors put a mark before the text)
    except UnicodeDecodeError:
        raise SceneError(f"{source}: is not a text file; it must be TOML in UTF-8") from None


def read_toml(source: str | Path) -> dict[str, Any]:
    """The tables of a TOML file."""
    text = read_text(source)
    deep = too_deep(text)
    if deep:
        raise SceneError(f"{source}: {deep}")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError also of an integer of 4300 digits
        raise SceneError(f"{source}: not valid TOML: {error}") from None


def too_deep(text: str) -> str:
    """What is nested too deeply in a text of TOML, or nothing."""
    names = brackets = 0
    for token in TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "name":
            names += 1
            if names > MOST_NAMES:
                line = text.count("\n", 0, token.start()) + 1
                return f"line {line}: more than {MOST_NAMES} names are joined by dots; a key has a few"
        elif kind == "open":
            names, brackets = 0, brackets + 1
            if brackets > MOST_BRACKETS:
                line = text.count("\n", 0, token.start()) + 1
                return (
                    f"line {line}: more than {MOST_BRACKETS} brackets are open; write it less deeply nested"
                )
        elif kind == "close":
            names, brackets = 0, max(brackets - 1, 0)
        elif kind not in ("dot", "space"):
            names = 0
    return ""
