"""A user's own `shapes` and `experiments` do no harm: nothing of ours has these names once installed."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import distributions
from pathlib import Path, PurePosixPath

import pytest
from code_blocks import blocks

ROOT = Path(__file__).resolve().parents[2]
SETUP = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
FOLDERS = {
    "implicit_geom": "implicit_geom",
    "shapes": "implicit_geom.shapes",
    "experiments": "implicit_geom.experiments",
}
DATA = (".json", ".cpp", ".hpp", ".toml", ".typed")
Python = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def python(tmp_path: Path) -> Python:
    """Python in a folder with `shapes.py` and `experiments`, which are first on the path as well."""
    (tmp_path / "shapes.py").write_text("raise ImportError('the shapes of a user')\n")
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "__init__.py").write_text("raise ImportError('experiments of a user')\n")
    path = os.pathsep.join([str(tmp_path), str(ROOT)])

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": path, "MPLBACKEND": "Agg"},
            capture_output=True,
            text=True,
        )

    return run


@pytest.mark.parametrize("name", ["shapes", "experiments"])
def test_a_general_name_is_the_users(python: Python, name: str) -> None:
    """Negative control: whoever imports these by their short names gets the user's."""
    done = python("-c", f"import {name}")
    assert done.returncode == 1
    assert "of a user" in done.stderr


def test_the_example_runs(python: Python) -> None:
    """The README's first example; afterwards the package shows its public names and no others."""
    example = next(block for block in blocks(ROOT / "README.md") if block.language == "python")
    public = "import implicit_geom as ours\nassert dir(ours) == sorted(ours.__all__), dir(ours)\n"
    done = python("-c", example.text + public)
    assert done.returncode == 0, done.stderr


def test_the_command_line_runs(python: Python) -> None:
    done = python("-m", "implicit_geom", "--help")
    assert done.returncode == 0, done.stderr
    assert "reproduce" in done.stdout


def test_an_experiment_is_reproduced(python: Python, tmp_path: Path) -> None:
    done = python("-m", "implicit_geom", "reproduce", "c07-disc", "--quick", "-o", "figures")
    assert done.returncode == 0, done.stderr
    assert "c07-disc: PASS" in done.stdout
    assert list((tmp_path / "figures" / "c07-disc").glob("*.csv"))


def folders() -> dict[str, Path]:
    """Our packages by name."""
    return {
        ".".join((name, *path.parent.relative_to(ROOT / folder).parts)): path.parent
        for folder, name in FOLDERS.items()
        for path in (ROOT / folder).rglob("__init__.py")
    }


def test_every_folder_is_installed() -> None:
    """pyproject.toml lists each package once, all of them within one name, and says where they are."""
    assert sorted(SETUP["packages"]) == sorted(folders())
    assert {name.split(".")[0] for name in SETUP["packages"]} == {"implicit_geom"}
    assert SETUP["package-dir"] == {name: folder for folder, name in FOLDERS.items()}


def uncovered(files: list[Path], patterns: dict[str, list[str]]) -> list[str]:
    """Of data files, those that no pattern of the package they lie in covers."""
    packages = {path: name for name, path in folders().items()}
    missing = []
    for file in files:
        home = next(parent for parent in file.parents if parent in packages)
        inner = PurePosixPath(file.relative_to(home))
        covered = (PurePosixPath(pattern) for pattern in patterns.get(packages[home], []))
        if not any(inner.parent == p.parent and inner.match(p.name) for p in covered):
            missing.append(file.relative_to(ROOT).as_posix())
    return missing


def test_data_files_are_installed() -> None:
    """References, scenes and sources beside the modules, and the mark of typed code."""
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in DATA]
    assert len(files) > 14
    assert uncovered(files, SETUP["package-data"]) == []


def test_data_files_without_a_pattern_are_found() -> None:
    """Negative control: a new folder of scenes, another suffix."""
    others = ["experiments/scenes/more/egg.toml", "experiments/peers/peer.json", "shapes/egg.toml"]
    known = ["experiments/scenes/new.toml", "experiments/peers/new.cpp"]
    assert uncovered([ROOT / name for name in others + known], SETUP["package-data"]) == others


def test_nothing_is_installed_under_a_general_name() -> None:
    """Files of the installed distribution: the package, the command, and what pip and setuptools write."""
    # (what setuptools leaves in a checkout lists its sources, and has no record of what is installed)
    found = next((d for d in distributions(name="implicit-geom") if d.read_text("RECORD")), None)
    if found is None:
        pytest.skip("implicit-geom is not installed")
    assert (found.read_text("top_level.txt") or "").split() == ["implicit_geom"]
    names = {path.parts[0] for path in found.files or () if path.parts[0] not in ("..", "__pycache__")}
    assert names
    assert not [name for name in names if not name.startswith(("implicit_geom", "__editable__"))]
