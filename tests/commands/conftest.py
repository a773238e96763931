"""The command line called in-process, in an empty directory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from implicit_geom.commands.cli import main

SCENE = """
gravity = [0, 0, -9.81]

[bodies.ground]
shape = { kind = "halfspace", normal = [0, 0, 1] }
fixed = true

[bodies.egg]
shape = { kind = "ellipsoid", a = 0.5, b = 0.4, c = 0.3 }
mass = 1.0
position = [0, 0, 0.31]
velocity = [1, 0, 0]

[friction]
mu = 0.4

[simulation]
duration = 0.2
step = 0.01
"""


@dataclass
class Outcome:
    status: int
    out: str
    err: str


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def scene(folder: Path) -> str:
    """A good scene file in the working directory."""
    (folder / "egg.toml").write_text(SCENE)
    return SCENE


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """implicit-geom with these arguments."""

    def run(*arguments: str) -> Outcome:
        capsys.readouterr()
        try:
            status = main(arguments)
        except SystemExit as leaving:
            status = int(leaving.code or 0)
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    return run
