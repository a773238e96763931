"""`implicit-geom certify`: a table; 0 where all holds, 1 where not, 2 for bad input."""

from __future__ import annotations

from pathlib import Path

import pytest
from impact_runs import dropped_ball

from implicit_geom.commands.cli import main

SCENE = """
[bodies.ground]
shape = {{ kind = "halfspace", normal = [0, 0, 1] }}
fixed = true
[bodies.{name}]
shape = {{ kind = "sphere", r = 0.1 }}
mass = 2.0
position = [0, 0, 0.2]
[friction]
mu = 0.2
restitution = {e}
"""


@pytest.fixture
def saved(tmp_path: Path) -> str:
    dropped_ball(mu=0.2, e=0.4).save(tmp_path / "run.h5")
    return str(tmp_path / "run.h5")


def test_a_run_that_holds(saved: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["certify", saved]) == 0
    out = capsys.readouterr().out
    assert out.startswith("certificate of 3 steps, implicit-rattle: holds")
    assert "restitution" in out


def test_a_run_that_does_not(saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Against a scene with another restitution."""
    for e, status in ((0.4, 0), (0.95, 1)):
        (tmp_path / "scene.toml").write_text(SCENE.format(name="ball", e=e))
        assert main(["certify", saved, "--scene", str(tmp_path / "scene.toml")]) == status
    assert "does NOT hold: restitution" in capsys.readouterr().out


def test_bad_input(saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No file, another file, a scene of other bodies: one line each."""
    (tmp_path / "text.h5").write_text("hello")
    (tmp_path / "scene.toml").write_text(SCENE.format(name="egg", e=0.4))
    for arguments in (
        [str(tmp_path / "none.h5")],
        [str(tmp_path / "text.h5")],
        [saved, "--scene", str(tmp_path / "scene.toml")],
        [saved, "--scene", str(tmp_path / "none.toml")],
    ):
        assert main(["certify", *arguments]) == 2
        assert capsys.readouterr().err.count("\n") == 1
