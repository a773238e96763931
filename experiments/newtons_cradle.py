"""Newton's cradle: what an impact law gives for spheres that touch, and for spheres that almost do.

Equal spheres in a row at rest, without friction and gravity, e = 1; m of them arrive together with speed v
and strike the n - m others. Where all touch, the impact is one problem over all contacts. The struck
contact approaches with v, the others with nothing, and what has not approached need not separate: each of
the two groups moves on as one,

    v_front = m (1 + e) v / n,    v_back = v_front - e v        (n = 3, m = 1: -1/3, 2/3, 2/3 of v)

Newton's, Poisson's and the energetic law agree on it; momentum and energy are kept. With gaps between the
spheres, of whatever width, the impacts follow each other in time, each exchanges two velocities, and the
last m spheres leave with v: what is seen of a cradle.

No single law can do both. The poses with gaps of 1e-9 m and of none differ by nothing that could be
measured, the velocities after by a third of v: the answer is discontinuous in the gaps, and a law that is
told the pose and the velocities alone has to take a side. The one that takes touching contacts for contacts
in sequence needs an order of them, which nothing gives where several are struck at once: two spheres that
strike a third from both sides, the corners of a box that lands flat. In truth the spheres are deformed
together, and what happens depends on their stiffness, on how waves run through the row, and on how long
contacts last, none of which a rigid body has. Who wants the cradle gives the spheres the gaps that they
have.

A gap that is smaller than the tolerance of a gap counts as none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom import Scene, Trajectory, shapes, simulate
from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.comparison import Table
from implicit_geom.experiments.figures import PAGE, PALETTE, label, panels, paper
from implicit_geom.experiments.impact_law import LAWS
from implicit_geom.experiments.impact_runs import IMPACT

TITLE = "Newton's cradle: spheres that touch, and spheres with gaps, by three impact laws"
PARAMS: dict[str, Any] = {
    "rows": ((3, 1), (5, 1), (5, 2)),
    "gaps": {1.0: (0.0, 1e-15, 1e-12, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3), 0.5: (0.0,)},  # by e
    "step": 0.01,
}
QUICK: dict[str, Any] = {"rows": ((3, 1), (5, 2)), "gaps": {1.0: (0.0, 1e-6, 1e-4), 0.5: (0.0,)}}

RADIUS, SPEED = 0.05, 1.0
AWAY = 0.0137  # m before the first impact: not at the end of a step
DURATION = 0.03  # s: the widest gaps are closed
WIDE = 1e-8  # m: gaps that are certainly open
EXACT = 1e-9


def touching(n: int, m: int, e: float) -> np.ndarray:
    """Velocities over v of a row in contact: both groups move on as one."""
    front = m * (1 + e) / n
    return np.array([front - e] * m + [front] * (n - m))


def in_turn(n: int, m: int, e: float) -> np.ndarray:
    """Velocities over v of a row with equal gaps: point masses that meet two by two, from event to event."""
    x = np.concatenate([-np.arange(m, 0, -1.0), np.arange(n - m) + 9.0])
    v = np.array([1.0] * m + [0.0] * (n - m))
    while True:
        closing = v[:-1] - v[1:]
        wait = np.where(closing > 1e-12, np.diff(x) / np.maximum(closing, 1e-12), np.inf)
        if np.all(np.isinf(wait)):
            return v
        k = int(np.argmin(wait))
        x = x + wait[k] * v
        x[k + 1] = x[k]
        mean, part = (v[k] + v[k + 1]) / 2, e * closing[k] / 2
        v[k], v[k + 1] = mean - part, mean + part


def row_of(n: int, m: int, gap: float, e: float) -> Scene:
    """The arriving spheres at a distance from the resting ones; all other gaps are equal."""
    s = Scene(gravity=(0, 0, 0))
    x = 0.0
    for k in range(n):
        if k:
            x += 2 * RADIUS + (AWAY if k == m else gap)
        s.add(
            f"sphere{k + 1}",
            shapes.sphere(RADIUS),
            mass=1.0,
            position=(x, 0, 0),
            velocity=(SPEED if k < m else 0, 0, 0),
        )
    s.friction(mu=0.0, restitution=e)
    return s


def run(params: dict[str, Any]) -> dict[str, Table]:
    rows: dict[str, list[Any]] = {
        name: []
        for name in (
            "law",
            "spheres",
            "arriving",
            "e",
            "gap",
            "sphere",
            "velocity",
            "closed",
            "open",
            "impacts",
        )
    }
    for n, m in params["rows"]:
        for e, gaps in params["gaps"].items():
            whole, one_by_one = touching(n, m, e), in_turn(n, m, e)
            for law in LAWS:
                for gap in gaps:
                    r = _struck(row_of(n, m, gap, e), law, params["step"])
                    count = int(np.sum(r.solves.table["form"] == IMPACT))
                    for k in range(n):
                        v = float(r[f"sphere{k + 1}"].velocity[-1, 0]) / SPEED
                        values = (law, n, m, e, gap, k + 1, v, whole[k], one_by_one[k], count)
                        for name, value in zip(rows, values, strict=True):
                            rows[name].append(value)
    return {"velocities": {name: np.array(column) for name, column in rows.items()}}


def _struck(scene: Scene, law: str, step: float) -> Trajectory:
    return simulate(scene, duration=DURATION, step=step, progress=False, impacts="events", impact_law=law)


def check(tables: dict[str, Table]) -> list[Check]:
    t, checks = tables["velocities"], []
    for law in LAWS:
        here = t["law"] == law
        none, wide = here & (t["gap"] == 0), here & (t["gap"] > WIDE)
        off = np.max(np.abs(t["velocity"] - t["closed"])[none])
        checks.append(at_most(f"{law}: touching spheres, off the closed form, over v", off, EXACT))
        off = np.max(np.abs(t["velocity"] - t["open"])[wide])
        checks.append(at_most(f"{law}: spheres with gaps, off one after the other, over v", off, EXACT))
    elastic = t["e"] == 1
    jump = np.min(
        [np.max(np.abs(t["closed"] - t["open"])[elastic & (t["spheres"] == n)]) for n in set(t["spheres"])]
    )
    checks.append(at_least("the two answers differ, over v", jump, 0.3))
    for name in ("gap", "law"):
        for value in np.unique(t[name]):
            rows = elastic & (t[name] == value)
            energy = np.sum(t["velocity"][rows] ** 2) / np.sum(t["closed"][rows] ** 2)
            checks.append(at_most(f"{name} {value}: energy, e = 1, off what arrives", abs(energy - 1), EXACT))
    return checks


@paper
def plot(tables: dict[str, Table]) -> dict[str, Any]:
    t = tables["velocities"]
    cases = sorted(set(zip(t["spheres"].tolist(), t["arriving"].tolist())))
    figure, axes = panels(1, len(cases), (PAGE, 2.7), sharey=True)
    for axis, letter, (n, m) in zip(axes[0], "abc", cases):
        rows = (t["spheres"] == n) & (t["arriving"] == m) & (t["law"] == "newton") & (t["e"] == 1)
        for k in range(n):
            here = rows & (t["sphere"] == k + 1)
            # none is drawn at the left edge
            gap = np.maximum(t["gap"][here], 1e-17)
            axis.semilogx(
                gap, t["velocity"][here], "o-", color=PALETTE[k], label=f"sphere {k + 1}", ms=5 - 0.7 * k
            )
        axis.set(xlabel="gap, m (left: none)")
        label(axis, letter, f"{m} of {n} arrive")
    axes[0, 0].set(ylabel="velocity after / v")
    figure.legend(*axes[0, -1].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return {"velocities": figure}
