"""Compiled code is kept until a source changes that decides it, and no longer; no module imports itself."""

from __future__ import annotations

import ast
import importlib.util
import shutil
import sys
from functools import cache
from pathlib import Path

import pytest

import implicit_geom.compiled.library
from implicit_geom.compiled.sources import EMITTING
from implicit_geom.machine import object_cache, sources
from implicit_geom.machine.object_cache import LOWERING

LIBRARY = "implicit_geom.compiled.library"
PACKAGE = Path(implicit_geom.__file__).parent
ROOT = PACKAGE.parent
SHAPES = Path(sys.modules["implicit_geom.shapes"].__path__[0])
NAME = "a name"


@cache
def file_of(module: str) -> Path | None:
    """Where a module is; None for what is none."""
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return None
    return Path(spec.origin) if spec is not None and spec.origin else None


@cache
def imports(module: str) -> frozenset[str]:
    """The package's modules that a module imports: anywhere in it, also for types alone.

    With each the folders that it lies in, whose files are run first (but for the package as a whole).
    """
    found = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if node.module and within(inner) and file_of(inner) else str(node.module))
    own = {name for name in found if within(name)}
    parts = [name.split(".") for name in own]
    return frozenset(own | {".".join(each[:k]) for each in parts for k in range(2, len(each))})


@cache
def tree(module: str) -> ast.Module:
    path = file_of(module)
    assert path is not None
    return ast.parse(path.read_text())


def says_nothing(module: str) -> bool:
    """Whether a module holds its docstring and nothing else."""
    return all(isinstance(node, ast.Expr) for node in tree(module).body)


def within(module: str) -> bool:
    return module.split(".")[0] == "implicit_geom"


def reached(module: str) -> set[str]:
    """A module and all that it imports, and so on."""
    found, todo = set(), [module]
    while todo:
        if (name := todo.pop()) not in found:
            found.add(name)
            todo += imports(name)
    return found


def uncovered(module: str, names: tuple[str, ...]) -> set[str]:
    """What a module reaches and the hash of these names does not cover."""
    files = set(sources.source_files(names).values())
    return {name for name in reached(module) if file_of(name) not in files and not says_nothing(name)}


def test_all_that_emits_code_is_covered() -> None:
    """Everything that the emitting modules import, however late, is in the list."""
    assert len(reached(LIBRARY)) > 50
    assert not uncovered(LIBRARY, EMITTING)
    assert not uncovered("implicit_geom.machine.compiled_vectorized", LOWERING)


@pytest.mark.parametrize("name", EMITTING)
def test_nothing_can_be_left_out(name: str) -> None:
    """Without any one of the list something that decides code would not be covered."""
    rest = tuple(other for other in EMITTING if other != name)
    assert any(f"{found}.".startswith(f"{name}.") for found in uncovered(LIBRARY, rest))


@pytest.mark.parametrize(
    "folder",
    ["check", "classical", "commands", "contact", "geometry", "run", "scene", "steppers", "studies"]
    + ["compiled/memory"],
)
def test_folders_that_emit_nothing(folder: str) -> None:
    """A change of a stepper, a command, a figure or of what fills memory leaves compiled code as it is."""
    files = sources.source_files(EMITTING).values()
    assert (PACKAGE / folder).is_dir()
    assert not [path for path in files if (PACKAGE / folder) in path.parents]


@pytest.mark.parametrize(
    "name",
    ["__init__", "version", "compiled/__init__", "compiled/engine", "compiled/runner", "compiled/lanes"]
    + ["compiled/eligibility", "model/model", "model/contact_group", "solvers/block_elimination"],
)
def test_modules_that_emit_nothing(name: str) -> None:
    """Neither do loops in Python, nor the model."""
    path = PACKAGE / f"{name}.py"
    assert path.is_file()
    assert path not in sources.source_files(EMITTING).values()


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The sources of the list in another place, where they may be changed; nothing is remembered."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, tmp_path / "implicit_geom", ignore=ignored)
    shutil.copytree(SHAPES, tmp_path / "beside", ignore=ignored, dirs_exist_ok=True)
    for name in EMITTING:
        module = sys.modules[name]
        if name == "implicit_geom.shapes":
            monkeypatch.setattr(module, "__path__", [str(tmp_path / "beside")])
        elif hasattr(module, "__path__"):
            moved = [str(tmp_path / Path(path).relative_to(ROOT)) for path in module.__path__]
            monkeypatch.setattr(module, "__path__", moved)
        else:
            path = Path(str(module.__file__))
            monkeypatch.setattr(module, "__file__", str(tmp_path / path.relative_to(ROOT)))
    monkeypatch.setattr(object_cache, "_made_from", object_cache._made_from.__wrapped__)
    monkeypatch.setattr(object_cache, "hash_of_sources", sources.hash_of_sources.__wrapped__)
    return tmp_path


def change(path: Path) -> None:
    path.write_text(path.read_text() + "# other\n")


def digests() -> tuple[str, str]:
    """Names of a march, and of a CasADi function for many columns."""
    return object_cache._digest(NAME, EMITTING), object_cache._digest(NAME, LOWERING)


@pytest.mark.parametrize(
    "changed",
    ["compiled/march.py", "compiled/loops/newton.py", "compiled/single/stage_1.py", "compiled/tables.py"]
    + ["equations/contact_ncp.py", "solvers/newton.py", "model/reasons.py", "rotation.py"]
    + ["machine/lowering.py", "../beside/spatial.py", "../beside/formula/surface.py"],
)
def test_another_source_is_another_file(changed: str, copy: Path) -> None:
    """The name of what is compiled changes with every source that decides it."""
    before = digests()
    change(copy / "implicit_geom" / changed)
    after = digests()
    assert after[0] != before[0]
    assert (after[1] != before[1]) == changed.startswith("machine")


def test_new_and_renamed_sources(copy: Path) -> None:
    """A file that is new, renamed or gone gives another name each time; the place of all does not count."""
    names = [digests()[0]]
    new = copy / "implicit_geom" / "equations" / "more.py"
    new.write_text("")
    names.append(digests()[0])
    new.rename(new.with_name("other.py"))
    names.append(digests()[0])
    assert len(set(names)) == 3
    new.with_name("other.py").unlink()
    (copy / "implicit_geom" / "compiled" / "more.py").write_text("")  # (that no module imports)
    assert digests()[0] == names[0]


def test_other_sources_keep_the_name(copy: Path) -> None:
    """Changes of files that emit nothing."""
    before = digests()
    others = ["compiled/runner.py", "compiled/lanes.py", "compiled/engine.py", "compiled/memory/arrays.py"]
    for name in [*others, "commands/cli.py", "studies/figures.py", "steppers/rattle.py", "run/simulate.py"]:
        change(copy / "implicit_geom" / name)
    assert digests() == before


def test_the_same_sources_in_another_place(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """An installed package and a checkout of the same version share their files."""
    before = digests()
    request.getfixturevalue("copy")
    assert digests() == before


@pytest.mark.parametrize("room", ["compiled", "machine"])
def test_no_module_imports_itself(room: str) -> None:
    """Nor by way of others, counting late imports and those for types."""
    for path in (PACKAGE / room).rglob("*.py"):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        back = {other for other in imports(name) if name in reached(other)}
        assert not back, f"{name} is imported by {back}, which it imports"
