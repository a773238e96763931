"""The pages name all there is, and nothing that is not: keys, columns, quantities, experiments, paths."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from code_blocks import PAGES, ROOT, prose

from implicit_geom import Scene, __version__, experiments, shapes, simulate
from implicit_geom.experiments import benchmarks
from implicit_geom.model.reasons import WORDS
from implicit_geom.scene.scene import FRICTION_FIELDS
from implicit_geom.scene.scene_file import BODY, SIMULATION, TOP
from implicit_geom.scene.switches import FIELDS, NAMED
from implicit_geom.shapes.serial import KINDS, PRIMITIVES
from implicit_geom.studies.sweeps.summaries import BODY as OF_BODIES
from implicit_geom.studies.sweeps.summaries import NAMED as QUANTITIES

DOCS = ROOT / "docs"
ROOMS = re.findall(r"`implicit_geom/(\w+)/`", (DOCS / "architecture.md").read_text())


def quoted(*pages: str) -> set[str]:
    """Words in backquotes, one by one: `a, b` are two."""
    text = " ".join(prose(DOCS / page) for page in pages)
    return {
        word for code in re.findall(r"`([^`\n]+)`", text) for word in re.split(r"[\s,()\[\]={}\"]+", code)
    }


@pytest.mark.parametrize(
    "names", [TOP, BODY, FRICTION_FIELDS, SIMULATION, FIELDS, KINDS, (*QUANTITIES, *OF_BODIES), NAMED]
)
def test_keys(names: tuple[str, ...]) -> None:
    """Keys of scene and sweep files, kinds of shapes, fields of steppers, quantities of sweeps."""
    pages = quoted("scenes.md", "batches-and-sweeps.md", "how-to-choose.md")
    top = {word.split(".")[0] for word in pages}
    assert {name for name in names if name not in pages | top} == set()


def test_constructors() -> None:
    """Sizes of every shape have the names of its constructor's arguments."""
    text = (DOCS / "scenes.md").read_text()
    for kind, shape in PRIMITIVES.items():
        (row,) = re.findall(rf"^\| `{kind}` \| (.*?) \|", text, flags=re.M)
        keys = re.findall(r"\w+", " ".join(re.findall(r"`([^`]*)`", row)))
        assert keys == list(inspect.signature(shape).parameters), kind


def test_columns() -> None:
    """Columns of contacts, steps and the ledger, and the reasons of steps."""
    scene = Scene(dim=2)
    scene.add("ground", shapes.halfplane(normal=(0, 1)), fixed=True)
    scene.add("disc", shapes.disc(0.1), mass=1.0, position=(0, 0.1))
    scene.friction(mu=0.3)
    run = simulate(scene, duration=0.02, step=0.01, progress=False)
    pages = quoted("results.md")
    for array in (run.contacts, run.steps, run.ledger):
        assert set(array.dtype.names or ()) - pages == set()
    reasons = " ".join((DOCS / "results.md").read_text().split())
    assert [words for words in WORDS.values() if f"`{words}`" not in reasons] == []


def test_experiments() -> None:
    """Every experiment is in the page of the papers; names after `reproduce` and `bench` are known ones."""
    text = (DOCS / "papers.md").read_text()
    assert [name for name in experiments.REGISTRY if f"`{name}`" not in text] == []
    for command, known in (("reproduce", experiments.REGISTRY), ("bench", benchmarks.REGISTRY)):
        for asked in re.findall(rf"`(?:implicit-geom )?{command} ([^`]+)`", " ".join(map(prose, PAGES))):
            words = [word for word in asked.split() if not word.startswith("-") and word.islower()]
            assert set(words) - {"all", *known} == set()


def test_walks() -> None:
    """Functions and classes that the walks through a step name are words of the code."""
    kinds = ("*.py", "*.hpp")
    folders = ("implicit_geom", "shapes")
    files = [path for folder in folders for kind in kinds for path in (ROOT / folder).rglob(kind)]
    words = set(re.findall(r"\w+", " ".join(path.read_text() for path in files)))
    text = (DOCS / "architecture.md").read_text()
    walks = text[text.index("## Walk 1") : text.index("## Same mathematics")]
    names = re.findall(r"`([A-Za-z_]\w*)(?:\.(\w+))?`", walks)
    assert len(names) > 40
    assert {word for pair in names for word in pair if word} - words == set()


def test_version() -> None:
    """The changelog and the citation are those of the version."""
    assert f"## {__version__}\n" in (ROOT / "CHANGELOG.md").read_text()
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_paths(page: Path) -> None:
    """A path in backquotes that begins with a folder of ours is there."""
    for path in re.findall(r"`([\w.-]+/[\w./-]*)`", prose(page)):
        first = path.split("/")[0]
        places = (ROOT / path, ROOT / "implicit_geom" / path)
        there = any(place.exists() or place.with_suffix(".py").exists() for place in places)
        if first in ("tests", "experiments", "shapes", "docs", "implicit_geom", *ROOMS):
            assert there, f"{page.name}: `{path}` is not there"
