"""Which solver finds a solution, and how quickly: performance profiles over contact problems.

Every solver gets every problem of `contact_problem_sets` with the tolerances 1e-4, 1e-6 and 1e-8 m/s, from
zero impulses. It has solved one where the certificate says so, the same for all (`solvers.contact.law`). A
profile [Dolan, More 2002] is the share of problems that a solver solves within a factor of the quickest
solver's time. Problems that no solver solves count against nobody. Times are the best of some calls, and one
solver is the quickest, by however little.

Dense solvers are not asked for problems with many contacts (`MOST`), Gauss-Seidel and ADMM stop after a while
(`LIMITS`): what they have not solved counts as not solved. The pyramids of MJ14 (`mlcp-fb-*`) solve another
law than the one that is certified, and are left out.

Solvers that claim solutions at the strictest tolerance must have the same motion, unless the problem is shown
to have several (`solver_agreement`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

import implicit_geom.solvers.contact  # noqa: F401 (enters the solvers)
from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.contact_problem_sets import problems
from implicit_geom.experiments.figures import PAGE, PALETTE, panels, paper
from implicit_geom.experiments.solver_agreement import AGREE, LOOSE, SAME, SEVERAL, agreement
from implicit_geom.solvers.contact.problem import ContactProblem
from implicit_geom.solvers.contact.solution import ContactSolution
from implicit_geom.solvers.contact.solve import SOLVERS, solve_contact

TITLE = "Contact solvers: shares solved and performance profiles at 1e-4, 1e-6 and 1e-8 m/s"
OURS = "pssn"
LEFT_OUT = ("default", "path", "mlcp-fb-rlm", "mlcp-fb-plm")
MOST = {"mncp-rlm": 40, "mncp-plm": 40, "t10": 60, "cadoux-acary": 100}  # contacts
LIMITS: dict[str, dict[str, Any]] = {"nsgs": {"seconds": 0.3}, "admm": {"iterations": 1000}}
PARAMS = {"every": 1, "tolerances": (1e-4, 1e-6, 1e-8), "most": 10_000, "solvers": None}
QUICK = {"every": 9, "most": 60, "solvers": ("pssn", "nsgs", "admm", "mncp-plm")}
REPEATS, LONG = 20, 0.02  # calls that are timed again, and s after which none is
RIGHT = 1e3  # end of the axis
Table = dict[str, np.ndarray]


def run(params: dict[str, Any]) -> dict[str, Table]:
    names = params["solvers"] or [name for name in SOLVERS if name not in LEFT_OUT]
    rows, compared = [], []
    for family, name, problem in problems(params["every"]):
        if problem.contacts > params["most"]:
            continue
        solve_contact(problem, OURS)  # what belongs to the problem is made once, for all solvers
        strictest: dict[str, ContactSolution] = {}
        for tolerance in params["tolerances"]:
            for solver in names:
                row = (family, name, problem.contacts, tolerance, solver)
                if problem.contacts > MOST.get(solver, problem.contacts):
                    rows.append((*row, 0, np.nan, np.nan, 0))
                    continue
                found, seconds = _timed(problem, solver, tolerance)
                rows.append((*row, int(found.converged), found.error, seconds, found.factorisations))
                if tolerance == min(params["tolerances"]):
                    strictest[solver] = found
        compared.append({"family": family, "problem": name, **agreement(problem, strictest)})
    columns = (
        *("family", "problem", "contacts", "tolerance", "solver"),
        *("solved", "error", "seconds", "factorisations"),
    )
    solves = zip(columns, zip(*rows, strict=True), strict=True)
    return {
        "solves": {name: np.array(column) for name, column in solves},
        "agreement": {name: np.array([row[name] for row in compared]) for name in compared[0]},
    }


def _timed(problem: ContactProblem, solver: str, tolerance: float) -> tuple[ContactSolution, float]:
    """A solution, and the best time of some calls; one call where it takes long."""
    options = LIMITS.get(solver, {})
    found = solve_contact(problem, solver, tolerance=tolerance, **options)
    best = spent = found.wall_time
    for _ in range(REPEATS if found.converged else 0):
        if spent > LONG:
            break
        again = solve_contact(problem, solver, tolerance=tolerance, **options).wall_time
        best, spent = min(best, again), spent + again
    return found, best


def shares(table: Table, tolerance: float) -> dict[str, dict[str, float]]:
    """By solver: the share solved of what anyone solves, and the share in which it is the quickest."""
    own = table["tolerance"] == tolerance
    solvers = list(dict.fromkeys(table["solver"][own].tolist()))
    solved, seconds = _by_problem(table, tolerance, solvers)
    known = solved.any(axis=1)
    times = np.where(solved, seconds, np.inf)[known]
    quick = times == times.min(axis=1, keepdims=True)
    return {
        name: {"solved": float(np.mean(solved[known, k])), "quickest": float(np.mean(quick[:, k]))}
        for k, name in enumerate(solvers)
    }


def report(tables: dict[str, Table]) -> str:
    """Shares by solver and tolerance, and the problems that are shown to have several motions."""
    table, compared = tables["solves"], tables["agreement"]
    tolerances = sorted(set(table["tolerance"].tolist()), reverse=True)
    found = {tolerance: shares(table, tolerance) for tolerance in tolerances}
    lines = ["  share solved, share quickest" + "".join(f"{tolerance:>16g}" for tolerance in tolerances)]
    for name in found[tolerances[0]]:
        cells = [f"{found[t][name]['solved']:9.1%} {found[t][name]['quickest']:6.1%}" for t in tolerances]
        lines.append(f"  {name:28}" + "".join(cells))
    several = np.flatnonzero(compared["verdict"] == SEVERAL)
    lines.append(f"  several motions: {len(several)} of {len(compared['problem'])} problems")
    lines += [
        f"    {compared['problem'][i]:32} {compared['certified'][i]:8.1e} m/s apart, residuals up to "
        f"{compared['certificate'][i]:.0e} m/s"
        for i in several
    ]
    return "\n".join(lines)


def check(tables: dict[str, Table]) -> list[Check]:
    table = tables["solves"]
    strictest = float(table["tolerance"].min())
    ours = shares(table, strictest)[OURS]
    own = (table["solver"] == OURS) & (table["solved"] == 1)
    count, kinds = len(np.unique(table["problem"])), len(np.unique(table["solver"]))
    at = f"at {strictest:g} m/s"
    worst = float(np.max(table["error"][own] / table["tolerance"][own]))
    whole = kinds > len(QUICK["solvers"])
    quickest = at_least(f"share in which {OURS} is the quickest {at}", ours["quickest"], 0.6)
    return [
        at_least("problems", count, 400 if whole else 30),
        at_least(f"share that {OURS} solves {at}, of what any solver solves", ours["solved"], 1.0),
        *([quickest] if whole else []),  # (times are no matter for a test)
        at_most(f"largest certified error of {OURS} over its tolerance", worst, 1.0),
        *agreed(tables["agreement"]),
    ]


def agreed(table: Table) -> list[Check]:
    """No solver claims a motion that others do not have, but for problems that are shown to have several."""
    loose = table["verdict"] == LOOSE
    apart = np.max(table["difference"][table["verdict"] == AGREE], initial=0.0)
    compared = int(np.sum((table["solvers"] > 1) & (table["verdict"] == AGREE)))
    return [
        at_most("problems with one motion on which solvers claim different ones", int(loose.sum()), 0),
        at_most(
            f"largest difference of velocities on {compared} problems that several solve, m/s", apart, SAME
        ),
    ]


@paper
def plot(tables: dict[str, Table]) -> dict[str, Any]:
    table = tables["solves"]
    tolerances = sorted(set(table["tolerance"].tolist()), reverse=True)
    figure, axes = panels(1, len(tolerances), (PAGE, 2.6))
    solvers = list(dict.fromkeys(table["solver"].tolist()))
    for axis, tolerance in zip(np.ravel(axes), tolerances, strict=True):
        solved, seconds = _by_problem(table, tolerance, solvers)
        known = solved.any(axis=1)
        times = np.where(solved, seconds, np.inf)[known]
        ratio = times / times.min(axis=1, keepdims=True)
        for k, name in enumerate(solvers):
            own = np.append(np.sort(ratio[np.isfinite(ratio[:, k]), k]), RIGHT)
            share = np.minimum(np.arange(1, len(own) + 1), len(own) - 1) / max(len(ratio), 1)
            axis.step(own, share, where="post", label=name, color=PALETTE[k % len(PALETTE)],
                      linestyle="-" if k < len(PALETTE) else "--")  # fmt: skip
        axis.set_xscale("log")
        axis.set_xlim(1, RIGHT)
        axis.set_ylim(0, 1.02)
        axis.set_xlabel("time over the quickest solver's")
        axis.set_title(f"{tolerance:g} m/s, {int(known.sum())} problems")
    np.ravel(axes)[0].set_ylabel("share solved")
    handles, labels = np.ravel(axes)[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return {"solver_profile": figure}


def _by_problem(table: Table, tolerance: float, solvers: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """(problems, solvers) whether it was solved, and the time."""
    own = table["tolerance"] == tolerance
    shape = (-1, len(solvers))
    return (table["solved"][own] == 1).reshape(shape), table["seconds"][own].reshape(shape)
