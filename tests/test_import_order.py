"""Rooms import only from rooms above them, no modules in a circle; files and folders are small.

Every import counts: at the top, within functions, and those for the type checker alone.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "implicit_geom"
FOLDERS = {PACKAGE: PACKAGE, "shapes": f"{PACKAGE}.shapes", "experiments": f"{PACKAGE}.experiments"}
ORDER = (
    *("rotation", "version", "process", "interface", "shapes", "scene", "machine", "equations", "solvers"),
    *(
        "model",
        "geometry",
        "contact",
        "engine",
        "steppers",
        "compiled",
        "classical",
        "check",
        "run",
        "studies",
    ),
    *(PACKAGE, "experiments", "commands", "__main__"),  # the package itself is what its `__init__` offers
)
LONGEST = 350  # lines of a module
FULLEST = 12  # modules of a folder
LARGE_ROOMS = ("machine", "compiled", "classical")  # of one kind each, but for their sub-folders


def sources() -> dict[str, str]:
    """The texts of our modules, by name; a package is its `__init__`."""
    found = {}
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            inner = path.relative_to(ROOT / folder).with_suffix("").parts
            parts = inner[:-1] if inner[-1] == "__init__" else inner
            found[".".join((package, *parts))] = path.read_text()
    return found


def imports(texts: Mapping[str, str]) -> dict[str, set[str]]:
    """The modules of ours that each module imports; `from package import module` imports that module."""
    found: dict[str, set[str]] = {name: set() for name in texts}
    for name, text in texts.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                found[name] |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert not node.level, f"{name} has an import relative to its own place"
                package = str(node.module)
                inner = [f"{package}.{alias.name}" for alias in node.names]
                found[name] |= {module if module in texts else package for module in inner}
        found[name] = {other for other in found[name] if other.split(".")[0] == PACKAGE}
    return found


def room(module: str) -> str:
    """`implicit_geom.run.storage.replay` is in `run`; the package itself is a room of one module."""
    return module.split(".")[1] if "." in module else module


def out_of_order(found: Mapping[str, set[str]]) -> list[str]:
    """Imports from a room below."""
    place = {name: k for k, name in enumerate(ORDER)}
    return [
        f"{name} imports {other}"
        for name, others in found.items()
        for other in sorted(others)
        if place[room(other)] > place[room(name)]
    ]


def circles(found: Mapping[str, set[str]]) -> list[list[str]]:
    """Modules that import each other, directly or through others: the strongly connected components."""
    names = sorted({*found}.union(*found.values()))
    number = {name: k for k, name in enumerate(names)}
    edges = [(number[a], number[b]) for a, others in found.items() for b in others]
    rows, columns = zip(*edges) if edges else ((), ())
    graph = coo_array(([1] * len(edges), (rows, columns)), shape=(len(names), len(names)))
    count, label = connected_components(graph, connection="strong")
    groups = [[name for name, own in zip(names, label) if own == k] for k in range(count)]
    alone = [[a] for a, others in found.items() if a in others]
    return [group for group in groups if len(group) > 1] + alone


def too_long(texts: Mapping[str, str]) -> list[str]:
    return [name for name, text in texts.items() if text.count("\n") > LONGEST]


def too_full(paths: list[str]) -> list[str]:
    """Folders of more modules than one looks through, among paths of Python files."""
    files = [Path(path) for path in paths]
    count = Counter(path.parent.as_posix() for path in files if path.name != "__init__.py")
    large = {f"{PACKAGE}/{name}" for name in LARGE_ROOMS}
    return [folder for folder, modules in count.items() if modules > FULLEST and folder not in large]


def test_rooms_import_from_rooms_above() -> None:
    found = imports(sources())
    assert len(found) > 200
    assert sum(map(len, found.values())) > 800
    assert out_of_order(found) == []


def test_no_circles() -> None:
    assert circles(imports(sources())) == []


def test_the_order_is_that_of_the_page() -> None:
    """The table of `docs/architecture.md` lists the same rooms in the same order, and there are no others."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(rf"^\| `(?:{PACKAGE}/)?(\w+)/` \|", page, re.MULTILINE)
    assert rows == [name for name in ORDER if name not in ("rotation", "version", PACKAGE, "__main__")]
    assert {room(name) for name in sources()} == {*ORDER}


def test_files_are_short() -> None:
    texts = {name: text for name, text in sources().items() if room(name) != "experiments"}
    assert too_long(texts) == []


def test_folders_are_not_full() -> None:
    paths = [path for folder in (PACKAGE, "shapes") for path in (ROOT / folder).rglob("*.py")]
    assert too_full([path.relative_to(ROOT).as_posix() for path in paths]) == []


GOOD = {
    "implicit_geom": "from implicit_geom.run.simulate import simulate",
    "implicit_geom.shapes": "",
    "implicit_geom.solvers.newton": "import numpy as np\nfrom implicit_geom import shapes",
    "implicit_geom.model": "",
    "implicit_geom.model.model": "from implicit_geom.solvers.newton import solve",
    "implicit_geom.model.pairs": "from implicit_geom.model.model import Model",
    "implicit_geom.run.simulate": "import implicit_geom.model.pairs",
    "implicit_geom.experiments.landing": "from implicit_geom import simulate",
}


def test_a_tree_in_order_passes() -> None:
    """The control of the controls below."""
    found = imports(GOOD)
    assert found["implicit_geom.solvers.newton"] == {"implicit_geom.shapes"}
    assert found["implicit_geom.model.pairs"] == {"implicit_geom.model.model"}
    assert out_of_order(found) == []
    assert circles(found) == []


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("from implicit_geom.model.model import Model", "implicit_geom.model.model"),
        ("import implicit_geom.model.model", "implicit_geom.model.model"),
        ("from implicit_geom.model import model", "implicit_geom.model.model"),
        ("from implicit_geom.model import model, anything", "implicit_geom.model"),
        ("def f():\n    from implicit_geom.run.simulate import simulate", "implicit_geom.run.simulate"),
        ("if TYPE_CHECKING:\n    from implicit_geom.run import simulate", "implicit_geom.run.simulate"),
        ("from implicit_geom import simulate", "implicit_geom"),
        ("import implicit_geom", "implicit_geom"),
    ],
)
def test_an_import_from_below_is_found(text: str, other: str) -> None:
    """Negative controls: each of these in a solver."""
    wrong = out_of_order(imports(GOOD | {"implicit_geom.solvers.newton": text}))
    assert f"implicit_geom.solvers.newton imports {other}" in wrong


def test_shapes_as_a_name_of_the_package_is_the_room() -> None:
    """`from implicit_geom import shapes` in a room above `shapes` is from below."""
    above = {"implicit_geom.interface.words": "from implicit_geom import shapes"}
    wrong = out_of_order(imports(GOOD | above))
    assert wrong == ["implicit_geom.interface.words imports implicit_geom.shapes"]


def test_a_circle_is_found() -> None:
    """Within one room, through a third module, and a module that imports itself."""
    back = {
        "implicit_geom.model.model": "def f():\n    from implicit_geom.model.bodies import mass",
        "implicit_geom.model.bodies": "from implicit_geom.model import pairs",
        "implicit_geom.run.simulate": "import implicit_geom.run.simulate",
    }
    found = imports(GOOD | back)
    assert out_of_order(found) == []
    three = ["implicit_geom.model.bodies", "implicit_geom.model.model", "implicit_geom.model.pairs"]
    assert circles(found) == [three, ["implicit_geom.run.simulate"]]


def test_relative_imports_are_refused() -> None:
    with pytest.raises(AssertionError, match="relative"):
        imports(GOOD | {"implicit_geom.run.batch": "from . import simulate"})


def test_what_is_too_large_is_found() -> None:
    assert too_long({"a": "\n" * LONGEST, "b": "\n" * (LONGEST + 1)}) == ["b"]
    folders = (f"{PACKAGE}/run", f"{PACKAGE}/machine", f"{PACKAGE}/machine/inner", "shapes")
    paths = [f"{folder}/m{k}.py" for folder in folders for k in range(FULLEST + 1)]
    assert too_full(paths) == [f"{PACKAGE}/run", f"{PACKAGE}/machine/inner", "shapes"]
    assert too_full([f"shapes/m{k}.py" for k in range(FULLEST)] + ["shapes/__init__.py"]) == []
