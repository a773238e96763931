"""AH02, section 3: a hexagonal pyramid at rest has solutions whose average is none, for any friction.

Its weight may rest on either of two triangles of its six corners, while the slip speed lambda of the other
three, which nothing presses, is open: two solutions of [AH02, eqs. 6, 7]. Halfway between them lambda and the
impulse of a corner are positive together. All solvers find the same motion and the same sum of the impulses.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom import Scene, Stepper, shapes
from implicit_geom.classical.anitescu_hart import Subproblem, direct_problem, solve_subproblem
from implicit_geom.classical.anitescu_hart_step import first_subproblem
from implicit_geom.classical.friction_pyramid import PyramidProblem
from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.figures import BLUE, GREEN, ORANGE, PAGE, PALETTE, label, panels, paper
from implicit_geom.experiments.piles import table_of
from implicit_geom.model.model import Model
from implicit_geom.solvers import lcp

TITLE = "AH02, section 3: two solutions of a hexagonal pyramid at rest whose average is none"
PARAMS: dict[str, Any] = {"mu": (0.01, 0.1, 0.5), "step": 0.05, "parts": 20}
QUICK = {"mu": (0.01, 0.5), "parts": 10}
RADIUS, HEIGHT, MASS, GRAVITY = 1.0, 1.5, 1.0, 9.81
LAMBDA = 1.0  # m/s, of the corners that carry nothing
Table = dict[str, np.ndarray]


def scene(mu: float) -> Scene:
    """The pyramid on its base."""
    angle = np.pi / 3 * np.arange(6)
    base = np.stack([RADIUS * np.cos(angle), RADIUS * np.sin(angle), np.zeros(6)], axis=1)
    shape = shapes.polyhedron([*base.tolist(), [0.0, 0.0, HEIGHT]])
    s = Scene(gravity=(0, 0, -GRAVITY))
    s.add("table", shapes.halfspace((0, 0, 1)), fixed=True)
    s.add("pyramid", shape, mass=MASS, position=(0, 0, float(shape.com[2])))
    s.friction(mu=mu)
    return s


def subproblem(mu: float, h: float) -> Subproblem:
    found = first_subproblem(Model(scene(mu)), h, Stepper.named("anitescu-hart", directions=4))
    around = np.arctan2(found.contacts.r2[:, 1], found.contacts.r2[:, 0]) % (2 * np.pi)
    if len(around) != 6 or np.any(np.diff(np.sort(around)) < 1):
        raise RuntimeError(f"the pyramid touches with {len(around)} corners, not six")
    order = np.argsort(around)
    return found.restricted_to(order)


def run(params: dict[str, Any]) -> dict[str, Table]:
    h = params["step"]
    between, solvers = [], []
    for mu in params["mu"]:
        problem = subproblem(mu, h)
        pyramids = PyramidProblem(problem.D, problem.contacts.mu)
        M, q = direct_problem(problem)
        scaled = lcp.LCP(M, q)
        ends = [_rest(pyramids, first, h) for first in (0, 1)]
        for t in np.linspace(0, 1, params["parts"] + 1):
            z = (1 - t) * ends[0] + t * ends[1]
            w = M @ z + q
            at = lcp.certified(scaled, z / scaled.scale, 0, "")
            between.append(
                {
                    "mu": mu,
                    "t": t,
                    "smallest_z": z.min(),
                    "smallest_w": w.min(),
                    "wz": w @ z,
                    "error": at.error,
                }
            )
        for name in ("lemke", "semismooth"):
            found = lcp.solve_lcp(M, q, solver=name)
            p = pyramids.impulses(found.z)
            solvers.append(_row(mu, name, problem, p, found.error, found.converged))
        for name in ("LCP1", "LCP2"):
            ended = solve_subproblem(problem, name)
            solvers.append(_row(mu, name, problem, ended.p, ended.error, not ended.reason))
    return {"between": table_of(between), "solvers": table_of(solvers)}


def _rest(pyramids: PyramidProblem, first: int, h: float) -> np.ndarray:
    """AH02's solution on every other corner, from corner `first` on."""
    z = np.zeros(pyramids.size)
    z[first : pyramids.n : 2] = h * MASS * GRAVITY / 3
    z[pyramids.sigma][1 - first :: 2] = LAMBDA
    return z


def _row(
    mu: float, name: str, problem: Subproblem, p: np.ndarray, error: float, solved: bool
) -> dict[str, Any]:
    _, two = problem.contacts.wrenches()
    wrench = np.einsum("nc,ncv->v", p, two)
    nu = problem.u[0] + problem.B[0] @ wrench
    weight = problem.h * MASS * GRAVITY * np.array([0, 0, 1.0, 0, 0, 0])
    return {
        "mu": mu,
        "solver": name,
        "solved": int(solved),
        "error": error,
        "velocity": np.abs(nu).max(),
        "wrench_error": np.abs(wrench - weight).max() / weight[2],
        **{f"p_{k + 1}": p[k, 0] for k in range(6)},
    }


def check(tables: dict[str, Table]) -> list[Check]:
    between, solvers = tables["between"], tables["solvers"]
    end = (between["t"] == 0) | (between["t"] == 1)
    middle = between["t"] == 0.5
    return [
        at_most("two solutions: their error, scaled", np.max(between["error"][end]), 1e-10),
        at_least("their average: its error, scaled", np.min(between["error"][middle]), 1e-4),
        at_least("average: z and w >= 0 all the same", np.min(between["smallest_w"][middle]), -1e-12),
        at_most("solvers that failed", np.sum(solvers["solved"] == 0), 0),
        at_most("solvers: error, scaled", np.max(solvers["error"]), 1e-10),
        at_most("solvers: velocity", np.max(solvers["velocity"]), 1e-10, "m/s"),
        at_most("solvers: sum of the impulses against the weight", np.max(solvers["wrench_error"]), 1e-10),
    ]


@paper
def plot(tables: dict[str, Table]) -> dict[str, Any]:
    between, solvers = tables["between"], tables["solvers"]
    figure, axes = panels(1, 2, (PAGE, 2.4))
    bars, path = axes[0]
    mu = solvers["mu"].max()
    weight = PARAMS["step"] * MASS * GRAVITY
    shown = {
        "solution 1": weight / 3 * np.array([1, 0, 1, 0, 1, 0]),
        "solution 2": weight / 3 * np.array([0, 1, 0, 1, 0, 1]),
        **{
            name: np.array(
                [
                    solvers[f"p_{k}"][(solvers["mu"] == mu) & (solvers["solver"] == name)][0]
                    for k in range(1, 7)
                ]
            )
            for name in ("lemke", "semismooth", "LCP2")
        },
    }
    for k, (name, p) in enumerate(shown.items()):
        bars.bar(np.arange(1, 7) + 0.16 * (k - 2), p / weight, 0.15, color=PALETTE[k], label=name)
    bars.set(xlabel="corner", ylabel="normal impulse over the weight's", ylim=(0, 0.75))
    bars.legend(ncols=2)
    for value, colour in zip(np.unique(between["mu"]), (BLUE, ORANGE, GREEN)):
        own = between["mu"] == value
        path.plot(between["t"][own], between["wz"][own], color=colour, label=rf"$\mu$ = {value:g}")
    path.set(xlabel="from solution 1 to solution 2", ylabel=r"$w \cdot z$, J", ylim=(0, None))
    path.legend()
    label(bars, "a", "impulses at rest")
    label(path, "b", "complementarity between two solutions")
    return {"pyramid": figure}
