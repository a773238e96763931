"""What the pages show works: every fenced block is run, read or compared, according to its language.

python    run, one namespace a page, in a temporary folder
toml      read as a scene or sweep file; scenes with [simulation] are simulated, for a short time
sh        `implicit-geom` lines are parsed and, where they are cheap, run; other lines are known ones
text      what the block before it prints, compared but for wall times; after a block that prints nothing
          it is a picture made of letters
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
from code_blocks import PAGES, ROOT, Block, anchors, blocks, links

from implicit_geom import read_scene, simulate
from implicit_geom.commands.cli import main, parser
from implicit_geom.studies.sweeps.grid import grid
from implicit_geom.studies.sweeps.sweep_file import read_sweep

SCENES = ROOT / "experiments" / "scenes"
SHORT = 0.2  # s of motion that a scene of a page is simulated for
MOST_WORDS = 700  # of the README
# lines of a shell that are no commands of ours; the tests that they name must be there
SET_UP = ("pip install ", "bash tests/run.sh", ".venv-test/bin/pytest ")
CHEAP = ("--help", "--version", "--list", "run ")
TIMES = re.compile(r"^(wall time|slowest) .*$", re.M)


def run_python(block: Block, names: dict[str, Any]) -> str:
    """Run a block among the names of those before it; what it prints. A failure names the page's line."""
    out = io.StringIO()
    # (empty lines in front, so that a traceback has the line numbers of the page)
    code = compile("\n" * block.line + block.text, str(block.page), "exec")
    with contextlib.redirect_stdout(out):
        exec(code, names)
    return out.getvalue()


def run_toml(block: Block) -> str:
    """Read a scene or sweep file; a scene is simulated for a short time, a sweep's grid is made."""
    data = tomllib.loads(block.text)
    if "values" in data:
        source = Path("block_of_a_page.toml")
        source.write_text(block.text)
        scene, options, values, _ = read_sweep(source)
        assert grid(scene, values, options)
        return ""
    scene, options = read_scene(data)
    assert scene.bodies or "bodies" not in data
    if options:
        duration = max(min(options["duration"], SHORT), options["step"])
        run = simulate(scene, **{**options, "duration": duration})
        assert not run.failed
    return ""


def called(arguments: list[str], cheap: bool) -> int:
    """The exit status of a command that is run, or only parsed."""
    try:
        return main(arguments) if cheap else int(parser().parse_args(arguments) is None)
    except SystemExit as leaving:
        return int(leaving.code or 0)


def run_shell(block: Block) -> str:
    """Parse every `implicit-geom` line, run the cheap ones; what they print."""
    out = io.StringIO()
    for line in block.text.replace("\\\n", " ").splitlines():
        line = line.removeprefix("$ ").strip()
        if line.startswith(SET_UP):
            assert all((ROOT / word).exists() for word in line.split() if word.startswith("tests/")), line
        if not line or line.startswith(SET_UP):
            continue
        word, *arguments = shlex.split(line, comments=True)
        assert word == "implicit-geom", f"{block}: {line!r} is no command that this test knows"
        with contextlib.redirect_stdout(out):
            status = called(arguments, cheap=any(mark in line for mark in CHEAP))
        assert status == 0, f"{block}: {line!r} ends with {status}"
    return out.getvalue()


def plain(text: str) -> str:
    """Without wall times and spaces at the ends of lines."""
    return "\n".join(line.rstrip() for line in TIMES.sub(r"\1", text).strip().splitlines())


def run_page(page: Path) -> None:
    """Every block of a page in its order; none is passed over."""
    names: dict[str, Any] = {"__name__": "page"}
    printed = ""  # by the block before
    for block in blocks(page):
        if block.language == "python":
            printed = run_python(block, names)
        elif block.language == "toml":
            printed = run_toml(block)
        elif block.language in ("sh", "console"):
            printed = run_shell(block)
        elif block.language == "text":
            assert not printed or plain(block.text) == plain(printed), f"{block}: this is not what is printed"
            printed = ""
        else:
            raise AssertionError(f"{block}: {block.language!r} is no language that this test knows")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the example scenes, as pages name them."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(SCENES, tmp_path, dirs_exist_ok=True)
    shutil.copytree(SCENES, tmp_path / "experiments" / "scenes")
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks(page: Path, folder: Path) -> None:
    """Every block of a page does what its language says."""
    run_page(page)


@pytest.mark.parametrize(
    "text",
    [
        "```python\nprint(2)\n```\nprints\n```text\n1\n```\n",
        "```python\n1 / 0\n```\n",
        "```toml\n[bodies.egg]\nshap = 1\n```\n",
        "```sh\nimplicit-geom walk scene.toml\n```\n",
        "```sh\nimplicit-geom run no_such_scene.toml\n```\n",
        "```sh\nrm -r .\n```\n",
        "```sh\nbash tests/run.sh tests/no_such_folder\n```\n",
        "```\nwhat is this\n```\n",
        "```rust\nfn main() {}\n```\n",
        "```python\nx = 1\n",
    ],
    ids=lambda text: text.split("\n")[1].replace(" ", "-"),
)
def test_bad_blocks(text: str, folder: Path) -> None:
    """A page with a block that does not do what it says is found out."""
    page = folder / "page.md"
    page.write_text(text)
    with pytest.raises((AssertionError, ValueError, ZeroDivisionError)):
        run_page(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links(page: Path) -> None:
    """A link within the repository leads to a file that is there, and to a heading of it."""
    for target in links(page):
        assert "://" not in target, f"{page}: {target} is an address; pages name none"
        name, _, fragment = target.partition("#")
        there = (page.parent / name).resolve() if name else page
        assert there.exists(), f"{page}: {target} leads nowhere"
        assert not fragment or fragment in anchors(there), f"{page}: there is no heading {target}"


def test_every_page_can_be_reached() -> None:
    """From the README and the index of the docs."""
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / target.partition("#")[0]).resolve() for target in links(index)}
    assert set(ROOT.glob("docs/*.md")) - {index} <= linked
    assert index in {(ROOT / target).resolve() for target in links(ROOT / "README.md")}


def test_length_of_the_readme() -> None:
    """A stranger reads it in three minutes."""
    assert len(ROOT.joinpath("README.md").read_text().split()) <= MOST_WORDS
