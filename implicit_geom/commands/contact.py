"""`implicit-geom contact`: solve a recorded contact problem; residuals and time by solver."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from implicit_geom.interface.choices import choice, positive
from implicit_geom.interface.errors import SceneError
from implicit_geom.interface.writing import check_input_kept

if TYPE_CHECKING:
    from implicit_geom.solvers.contact.problem import ContactProblem
    from implicit_geom.solvers.contact.solution import ContactSolution

RESIDUALS = ("signorini", "cone", "dissipation", "momentum", "bilateral")
COLUMNS = ("solver", "converged", *RESIDUALS, "iterations", "factorisations", "time")


def add(commands: Any, debug: argparse.ArgumentParser) -> None:
    p = commands.add_parser("contact", parents=[debug], help="solve a recorded contact problem")
    p.add_argument("problem", metavar="PROBLEM.hdf5", help="a contact problem in FCLIB's layout")
    p.add_argument(
        "--solver",
        nargs="+",
        action="extend",
        metavar="NAME",
        help="solvers by name, or all (default: the default one)",
    )
    p.add_argument("--tolerance", type=float, default=1e-8, metavar="X", help="of each residual, m/s (1e-8)")
    p.add_argument(
        "-o", "--output", metavar="OUT.hdf5", help="write the problem there with the best solution"
    )
    p.add_argument("--force", action="store_true", help="overwrite an output that is no contact problem")
    p.set_defaults(main=main)


def main(chosen: argparse.Namespace) -> int:
    from implicit_geom.solvers.contact.fclib.files import check_output, read_solutions
    from implicit_geom.solvers.contact.solve import SOLVERS, solve_contact

    source = Path(chosen.problem)
    asked = chosen.solver or ["default"]
    every = "all" in asked
    # (the default one is another by its own name)
    own = {function: name for name, function in SOLVERS.items() if name != "default"}
    distinct = [name for name, function in SOLVERS.items() if own.get(function, name) == name]
    names = distinct if every else list(dict.fromkeys(asked))
    for name in asked:
        choice("solver", name, ("all", *SOLVERS))
    tolerance = positive("tolerance", chosen.tolerance)
    output = None if chosen.output is None else Path(chosen.output)
    if output is not None:
        check_output(output, force=chosen.force)
        check_input_kept(source, output)
    problem, known, guesses = read_solutions(source)
    print(describe(problem))
    print()
    print(_line(COLUMNS))
    if known is not None:
        known.tolerance = tolerance
        print(_line(("(file)", *_results(known)[1:-3])))
    found: list[ContactSolution] = []
    for name in names:
        try:
            solution = solve_contact(problem, name, tolerance=tolerance)
        except SceneError as error:
            # (of all solvers those count that can solve such a problem)
            if not every:
                raise
            print(f"{name:<{_width('solver')}} {error}")
            continue
        found.append(solution)
        print(_line(_results(solution)), flush=True)
    if output is not None and found:
        best = min(found, key=lambda s: s.error)
        problem.write(output, solution=best, guesses=guesses, force=chosen.force)
        print(f"\nsaved {output}, solved by {best.solver}")
    return 0 if found and all(solution.converged for solution in found) else 1


def describe(problem: ContactProblem) -> str:
    """Sizes of a problem in one or two lines."""
    mu = problem.mu
    friction = "no contacts" if not mu.size else f"mu {mu.min():g} to {mu.max():g}"
    if mu.size and mu.min() == mu.max():
        friction = f"mu {mu[0]:g}"
    if (problem.e != 1).any():
        friction += ", ellipsoids"
    if problem.mu_r is not None:
        friction += ", rolling friction"
    bilateral = problem.G.shape[1]
    more = f", {bilateral} bilateral rows" if bilateral else ""
    contacts = f"{problem.contacts} contacts of {problem.dim} rows, {problem.n} velocities{more}"
    return f"{contacts}; {friction}"


def _results(s: ContactSolution) -> tuple[str, ...]:
    residuals = (f"{s.residuals[name]:.1e}" for name in RESIDUALS)
    counts = (str(s.iterations), str(s.factorisations), f"{s.wall_time:.4f} s")
    return (s.solver, "yes" if s.converged else "NO", *residuals, *counts)


def _width(name: str) -> int:
    return 22 if name == "solver" else max(len(name), 9)


def _line(cells: tuple[str, ...]) -> str:
    first, *rest = (f"{cell:<{_width(name)}}" for name, cell in zip(COLUMNS, cells, strict=False))
    return " ".join([first, *rest]).rstrip()
