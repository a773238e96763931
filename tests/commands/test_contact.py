"""`implicit-geom contact`: a table of solvers, their residuals, exit status, a copy with the solution."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fixed_point import fixed_point

from implicit_geom import ContactProblem, ContactSolution, Scene, SceneError, contact_problem, shapes
from implicit_geom.solvers.contact.solution import solution_of
from implicit_geom.solvers.contact.solve import SOLVERS


def nothing(problem: ContactProblem, **_: Any) -> ContactSolution:
    """A solver that gives up at once."""
    return solution_of(problem, np.zeros(problem.H.shape[1]))


def refuses(problem: ContactProblem, **_: Any) -> ContactSolution:
    raise SceneError(f"spatial problems alone, not those of {problem.dim} rows")


@pytest.fixture
def solvers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the tests alone."""
    for name in list(SOLVERS):
        monkeypatch.delitem(SOLVERS, name)
    for name, solver in (("default", fixed_point), ("nothing", nothing), ("refuses", refuses)):
        monkeypatch.setitem(SOLVERS, name, solver)


@pytest.fixture
def problem(folder: Path, solvers: None) -> ContactProblem:
    """A box that slides, in p.hdf5, with a guess."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    scene.add("box", shapes.box(0.1, 0.1, 0.1), mass=2.0, position=(0, 0, 0.1), velocity=(1, 0, 0))
    scene.friction(mu=0.3)
    problem = contact_problem(scene, step=0.01)
    problem.write(folder / "p.hdf5", guesses=[np.ones(12)])
    return problem


Call = Callable[..., Any]


def rows(out: str) -> dict[str, list[str]]:
    return {line.split()[0]: line.split() for line in out.splitlines() if line.strip()}


def test_default_solver(call: Call, problem: ContactProblem) -> None:
    """The size of the problem, then one row; status 0 where it converged."""
    outcome = call("contact", "p.hdf5")
    assert outcome.status == 0
    assert outcome.err == ""
    assert outcome.out.startswith("4 contacts of 3 rows, 6 velocities; mu 0.3\n")
    table = rows(outcome.out)
    expected = ["solver", "converged", "signorini", "cone", "dissipation", "momentum", "bilateral"]
    assert table["solver"] == [*expected, "iterations", "factorisations", "time"]
    assert table["default"][1] == "yes"
    assert all(float(x) <= 1e-8 for x in table["default"][2:7])


def test_status_and_tolerance(call: Call, problem: ContactProblem) -> None:
    """1 where one of those asked for did not converge to the tolerance."""
    outcome = call("contact", "p.hdf5", "--solver", "default", "nothing")
    assert outcome.status == 1
    assert [rows(outcome.out)[name][1] for name in ("default", "nothing")] == ["yes", "NO"]
    loose = call("contact", "p.hdf5", "--solver", "nothing", "--tolerance", "10")
    assert loose.status == 0


def test_all(call: Call, problem: ContactProblem) -> None:
    """`all` are all that there are; one that refuses says why and does not count."""
    outcome = call("contact", "p.hdf5", "--solver", "all", "--tolerance", "10")
    assert outcome.status == 0
    assert set(rows(outcome.out)) >= {"default", "nothing", "refuses"}
    assert "spatial problems alone" in outcome.out
    named = call("contact", "p.hdf5", "--solver", "refuses")
    assert named.status == 2
    assert named.err == "implicit-geom: spatial problems alone, not those of 3 rows\n"


def test_one_solver_by_two_names(call: Call, problem: ContactProblem, monkeypatch: Any) -> None:
    """Of `all` it is one; the default goes by its own name."""
    monkeypatch.setitem(SOLVERS, "fixed-point", fixed_point)
    table = rows(call("contact", "p.hdf5", "--solver", "all").out)
    assert "default" not in table
    assert table["fixed-point"][1] == "yes"
    assert "default" in rows(call("contact", "p.hdf5").out)


def test_output(call: Call, problem: ContactProblem, folder: Path) -> None:
    """The best solution goes into a copy, with the file's guesses; the file stays as it was."""
    before = (folder / "p.hdf5").read_bytes()
    outcome = call("contact", "p.hdf5", "--solver", "nothing", "default", "-o", "solved.hdf5")
    assert outcome.status == 1
    assert "saved solved.hdf5, solved by default" in outcome.out
    assert (folder / "p.hdf5").read_bytes() == before
    solution = ContactSolution.read(folder / "solved.hdf5")
    assert solution.converged
    assert len(ContactSolution.read_guesses(folder / "solved.hdf5")) == 1
    again = call("contact", "solved.hdf5")
    assert rows(again.out)["(file)"][1] == "yes"
    assert call("contact", "p.hdf5", "-o", "solved.hdf5").status == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.hdf5"], "none.hdf5: cannot be read: No such file"),
        (["text.hdf5"], "text.hdf5: is no HDF5 file"),
        (["p.hdf5", "--solver", "defalt"], "solver = 'defalt' is not known; did you mean 'default'?"),
        (["p.hdf5", "--tolerance", "-1"], "tolerance = -1.0 must be positive"),
        (["p.hdf5", "-o", "p.hdf5"], "is the input file"),
        (["p.hdf5", "-o", "text.hdf5"], "exists and is not a contact problem"),
        (["p.hdf5", "-o", "p.txt"], "ends in .hdf5"),
        ([], "PROBLEM.hdf5"),
    ],
)
def test_bad_input(
    arguments: list[str], words: str, call: Call, problem: ContactProblem, folder: Path
) -> None:
    """One line, status 2, nothing written."""
    (folder / "text.hdf5").write_text("hello")
    outcome = call("contact", *arguments)
    assert outcome.status == 2, outcome
    assert words in outcome.err
    assert outcome.err.count("\n") == 1
    assert outcome.out == ""
    assert sorted(p.name for p in folder.iterdir()) == ["p.hdf5", "text.hdf5"]
