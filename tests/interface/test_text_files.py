"""Files of strangers: only regular ones, of bounded size and depth."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest

from implicit_geom import SceneError
from implicit_geom.interface.text_files import LARGEST_FILE, MOST_BRACKETS, MOST_NAMES, read_toml, too_deep
from implicit_geom.run.storage.replay import read_record
from implicit_geom.scene.scene_file import read_scene

DEEP = {
    "one dotted key": ".".join(["a"] * 30_000) + " = 1\n",
    "quoted parts": ".".join(["'a'"] * 100) + " = 1\n",
    "spaces about the dots": " . ".join(["a"] * 100) + " = 1\n",
    "a table's name": f"[{'.'.join(['a'] * 100)}]\n",
    "brackets": "a = " + "[" * 100_000 + "\n",
    "inline tables": "a = " + "{a=" * 5000 + "\n",
    "behind a text with quotes": "t = { x = ''' \" ''', " + ".".join(["a"] * 100) + ' = 1 } # "\n',
    "behind a text with a hash": 't = { x = """ # """, ' + ".".join(["a"] * 100) + " = 1 }\n",
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP.keys())
def test_depth_is_refused_before_it_is_read(text: str, tmp_path: Path) -> None:
    """Long dotted keys and open brackets end in one line, in little memory."""
    path = tmp_path / "deep.toml"
    path.write_text(text)
    tracemalloc.start()
    with pytest.raises(SceneError, match=r"deep.toml: line 1: more than \d+ (names|brackets)"):
        read_scene(path)
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()


def test_what_only_looks_deep_is_read() -> None:
    """Dots and brackets in texts and comments do not count, nor do those side by side."""
    dots, brackets = ".".join("a" * 100), "[" * 100
    assert too_deep(f'a = "{dots}" # {brackets}\nb = \'{brackets}\'\nc = """\n{dots}\n{brackets}"""\n') == ""
    assert too_deep("a = [" + "[1.5, 2.5], " * 5000 + "]") == ""
    assert too_deep(".".join(["a"] * MOST_NAMES) + " = " + "[" * MOST_BRACKETS) == ""


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    """Pipes, devices and directories are refused by name, at once."""
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    link = tmp_path / "link.toml"
    link.symlink_to(pipe)
    cases = {pipe: "a pipe", link: "a pipe", Path("/dev/zero"): "a device", tmp_path: "a directory"}
    for path, what in cases.items():
        for read in (read_scene, read_record):
            with pytest.raises(SceneError, match=f"is {what}; give the name of a text file"):
                read(path)
    with pytest.raises(SceneError, match="not the name of a file"):
        read_scene("a\0b")
    with pytest.raises(SceneError, match="scene = 3"):
        read_scene(3)  # type: ignore[arg-type]


def test_large_files_are_refused(tmp_path: Path) -> None:
    """More than the limit is not read at all; a sparse file costs nothing."""
    path = tmp_path / "large.toml"
    with path.open("wb") as file:
        file.truncate(100 * LARGEST_FILE)
    with pytest.raises(SceneError, match="more than 4 MB"):
        read_scene(path)


def test_numbers_of_many_digits(tmp_path: Path) -> None:
    """An integer that Python does not convert is no other kind of error."""
    path = tmp_path / "digits.toml"
    path.write_text(f"dim = {'9' * 5000}\n")
    with pytest.raises(SceneError, match="not valid TOML"):
        read_scene(path)
    path.write_text(f"dim = 0x{'9' * 5000}\n")
    with pytest.raises(SceneError, match=r"dim = \(an integer of about 60\d\d digits\) must be 2 or 3"):
        read_scene(path)


@pytest.mark.parametrize("name", ["a\\nb", "\\u001b[31mred", "a\\u2028b", "\\u202eegg", "a\\u0000", ""])
def test_names_that_cannot_be_printed_are_refused_at_once(name: str, tmp_path: Path) -> None:
    """Control characters, line separators and direction overrides in a body's name."""
    path = tmp_path / "names.toml"
    path.write_text(f'[bodies."{name}"]\nshape = {{ kind = "sphere", r = 1 }}\nmass = 1\n')
    with pytest.raises(SceneError, match=r"names.toml: bodies = '.*' must") as refused:
        read_scene(path)
    assert str(refused.value).isprintable()


def test_a_mark_before_the_text_is_passed_over(tmp_path) -> None:
    """Some editors begin a file in UTF-8 with U+FEFF."""
    path = tmp_path / "scene.toml"
    path.write_bytes(b"\xef\xbb\xbfdim = 2\n")
    assert read_toml(path) == {"dim": 2}
