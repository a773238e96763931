"""AH02, Table 1: the first step of 210 discs at rest, LCP0 against LCP2, and the true frictional problem.

The residual error of LCP2 is its normal velocity error, the largest mu lambda of a contact that presses. AH02
does not give the discs' inertia: `uniform` discs have m r^2 / 2, `light` ones m r^2 / 20, with which the
paper's numbers come out (between its frictions, at 0.3, the error is as large as at 0.2). `implicit-euler`
solves the step with the true gap and the exact friction law; its residual is that of
`check.certificate`. LCP0 is the same step with its gap linearised, by Lemke's method, whose pivots
are what AH02 calls iterations. For large friction the pile may stay or move: both are solutions, so that
speeds may differ by model. Models that do not solve the step are shown like others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom.classical.anitescu_hart import SubproblemOutcome, solve_subproblem
from implicit_geom.classical.anitescu_hart_step import first_subproblem
from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.figures import BLUE, GREY, ORANGE, PAGE, RED, label, panels, paper
from implicit_geom.experiments.piles import STEP, UNIFORM, collapse, count, pile, table_of
from implicit_geom.model.model import Model

TITLE = "AH02, Table 1: first step of 210 discs, LCP0, LCP2 and the true frictional problem"
PARAMS: dict[str, Any] = {
    "rows": 20,
    "mu": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8),
    "limit": 10_000,  # AH02's
}
QUICK = {"rows": 5, "mu": (0.1, 0.2, 0.4, 0.6, 0.8), "limit": 2000}
LIGHT = 0.05
PAPER = {0.1: 0.06, 0.2: 0.12, 0.4: 0.07, 0.6: 1e-8, 0.8: 8e-11}  # m/s, of 210 discs
RESTS = 0.6  # friction from which the pile stays as it is
Table = dict[str, np.ndarray]


def run(params: dict[str, Any]) -> dict[str, Table]:
    rows, limit = params["rows"], params["limit"]
    return {"table_1": table_of([row(rows, mu, limit) for mu in params["mu"]])}


def row(rows: int, mu: float, limit: int) -> dict[str, Any]:
    """One friction coefficient under all models."""
    uniform, light = (_relaxed(rows, mu, inertia) for inertia in (UNIFORM, LIGHT))
    direct = solve_subproblem(first_subproblem(Model(pile(rows, mu)), STEP), "LCP0", limit=limit)
    true = collapse(rows, mu, STEP, "implicit-euler")
    steps = true.steps[true.steps["status"] != "failed"]
    laws = [steps[name].max(initial=0.0) for name in ("dynamics", "complementarity", "friction")]
    pressed = uniform.separation > 0
    return {
        "mu": mu,
        "discs": count(rows),
        "LCP2_error": uniform.separation.max(),
        "LCP2_mean_error": uniform.separation[pressed].mean() if pressed.any() else 0.0,
        "LCP2_error_light": light.separation.max(),
        "paper_error": PAPER.get(mu, np.nan),
        "LCP2_lcp_error": max(uniform.error, light.error),
        "LCP2_speed": np.abs(uniform.nu).max(),
        "LCP0_pivots": direct.iterations,
        "LCP0_solved": int(not direct.reason),
        "LCP0_lcp_error": direct.error,
        "LCP0_speed": np.abs(direct.nu).max() if not direct.reason else np.nan,
        "true_solved": int(len(steps) == 1),
        "true_solves": int(steps["solves"].sum()),
        "true_residual": float(max(laws)) if len(steps) else np.nan,
        "true_speed": float(np.abs(true.solves.half).max()) if len(steps) else np.nan,
    }


def _relaxed(rows: int, mu: float, inertia: float) -> SubproblemOutcome:
    return solve_subproblem(first_subproblem(Model(pile(rows, mu, inertia=inertia)), STEP), "LCP2")


def check(tables: dict[str, Table]) -> list[Check]:
    t = tables["table_1"]
    mu, error, light = t["mu"], t["LCP2_error"], t["LCP2_error_light"]
    rests = mu >= RESTS - 1e-9
    solved = t["LCP0_solved"] == 1
    checks = [
        at_most("LCP2: largest error of a complementarity problem", np.max(t["LCP2_lcp_error"]), 1e-10),
        at_most(
            "LCP2: residual error for mu >= 0.6",
            np.max(np.append(error, light)[np.tile(rests, 2)]),
            1e-8,
            "m/s",
        ),
        at_most("LCP0: error where it is solved", np.max(t["LCP0_lcp_error"][solved], initial=0.0), 1e-10),
        at_least("true problem: frictions solved in one step", np.sum(t["true_solves"] == 1), len(mu)),
        at_most("true problem: residual of its laws", np.max(t["true_residual"]), 1e-8, "m/s"),
    ]
    for name, each in {"uniform": error, "light": light}.items():
        peak = mu[np.argmax(each)]
        checks.append(at_least(f"LCP2, {name} discs: friction of the largest residual error", peak, 0.15))
        checks.append(at_most(f"LCP2, {name} discs: friction of the largest residual error", peak, 0.35))
    listed = np.isfinite(t["paper_error"])
    peak = mu[listed][np.argmax(light[listed])]
    checks.append(
        at_most("LCP2, light discs: the same among the paper's frictions, less 0.2", abs(peak - 0.2), 1e-9)
    )
    if t["discs"][0] == 210:
        known = listed & ~rests
        off = np.max(np.abs(light[known] / t["paper_error"][known] - 1))
        checks.append(at_most("LCP2, light discs: residual error against the paper's, relative", off, 0.25))
        checks.append(at_least("LCP0: frictions that meet its iteration limit", np.sum(~solved), 1))
    return checks


@paper
def plot(tables: dict[str, Table]) -> dict[str, Any]:
    t = tables["table_1"]
    figure, axes = panels(1, 2, (PAGE, 2.5))
    error, pivots = axes[0]
    error.plot(t["mu"], t["LCP2_error_light"], "s-", color=ORANGE, label="LCP2, light discs")
    error.plot(t["mu"], t["LCP2_error"], "o-", color=BLUE, label="LCP2, uniform discs")
    if t["discs"][0] == 210:
        error.plot(t["mu"], t["paper_error"], "x", color="black", markersize=6, label="AH02, Table 1")
    error.set(xlabel=r"friction $\mu$", ylabel="normal velocity error, m/s", ylim=(-0.005, None))
    solved = t["LCP0_solved"] == 1
    pivots.plot(t["mu"][solved], t["LCP0_pivots"][solved], "o", color=BLUE, label="solved")
    pivots.plot(t["mu"][~solved], t["LCP0_pivots"][~solved], "x", color=RED, label="limit reached")
    pivots.set(xlabel=r"friction $\mu$", ylabel="pivots of Lemke's method", ylim=(0, None))
    residual = pivots.twinx()
    residual.semilogy(t["mu"], np.maximum(t["true_residual"], 1e-16), "^--", color=GREY, linewidth=0.8)
    residual.set_ylabel("residual of implicit-euler, m/s", color=GREY)
    residual.set_ylim(1e-16, 1e-6)
    residual.grid(False)
    residual.spines["right"].set_visible(True)
    for axis, letter, title in zip(axes[0], "ab", ("residual error of LCP2", "LCP0 and the true problem")):
        label(axis, letter, title)
        axis.legend(loc="lower right" if axis is pivots else "upper right")
    return {"table_1": figure}
