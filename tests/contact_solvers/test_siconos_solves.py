"""Siconos solves a file of ours: read by h5py alone, handed over as it is, certified by our residuals."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest
from fixed_point import fixed_point

from implicit_geom import ContactSolution, Scene, contact_problem, shapes
from implicit_geom.experiments.peers import SOURCES, installed, siconos_peer

needed = pytest.mark.skipif(
    "siconos" not in installed(), reason=f"siconos is not installed ({SOURCES['siconos']})"
)
SOURCE = Path(__file__).parents[1] / "support" / "siconos_contact.cpp"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The C++ program that asks Siconos."""
    made = tmp_path_factory.mktemp("siconos") / "siconos_contact"
    include = [f"-I{siconos_peer.HEADERS / name}" for name in ("numerics", "")]
    command = [str(siconos_peer.compiler()), "-O1", "-std=c++14", *include, str(SOURCE), "-o", str(made)]
    subprocess.run([*command, "-lsiconos_numerics"], check=True)
    return made


def numbers(path: Path, tolerance: float) -> str:
    """The problem of a file as the program reads it."""
    with h5py.File(path) as file:
        group = file["fclib_global"]
        words: list[float] = [len(group["vectors/mu"]), group["M/n"][0]]
        for name in "MH":
            p, i, x = (group[f"{name}/{key}"][()] for key in "pix")
            assert group[f"{name}/nz"][0] == -1
            column = np.repeat(np.arange(len(p) - 1), np.diff(p))
            words += [len(x), *np.column_stack([i, column, x]).ravel().tolist()]
        for name in ("f", "w", "mu"):
            words += group[f"vectors/{name}"][()].tolist()
    whole = " ".join(repr(int(word)) if float(word).is_integer() else repr(float(word)) for word in words)
    return f"{whole} {tolerance!r}"


def scene(name: str) -> Scene:
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    # (straight on, whatever the corners share of the load leaves the motion as it is)
    scene.add("low", shapes.box(0.2, 0.2, 0.1), mass=3.0, position=(0, 0, 0.1), velocity=(0.5, 0, 0))
    if name == "stack":
        scene.add("high", shapes.box(0.1, 0.2, 0.1), mass=1.0, position=(0.05, 0, 0.3))
        scene.add("ball", shapes.sphere(0.1), mass=0.5, position=(0.305, 0, 0.1), velocity=(-1, 0, 0.5))
    scene.friction(mu=0.3)
    return scene


@needed
@pytest.mark.parametrize("name", ["sliding box", "stack"])
def test_siconos_solves_a_file_of_ours(name: str, program: Path, tmp_path: Path) -> None:
    """Its velocities and impulses pass our residuals, and its contact velocities are ours."""
    path = tmp_path / "p.hdf5"
    problem = contact_problem(scene(name), step=0.01, reach=0.06)
    problem.write(path)
    done = subprocess.run(
        [str(program)],
        input=numbers(path, 1e-12),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **siconos_peer.ONE_THREAD},
    )
    (line,) = (text for text in done.stdout.splitlines() if text.startswith("answer"))
    _, _, *found = line.split()
    v, r = np.split(np.array(found, float), [problem.n])
    theirs = ContactSolution(problem, v, r, np.zeros(0), solver="siconos", tolerance=1e-7)
    assert theirs.converged, theirs.residuals
    ours = fixed_point(problem, tolerance=1e-10)
    np.testing.assert_allclose(theirs.contact_velocity, ours.contact_velocity, atol=1e-6)
