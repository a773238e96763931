"""T10, Fig. 6: five balls in a column fall on the floor; the shock passes through all of them in one step.

The balls start at rest, one on the other, and fall together. When the lowest one meets the floor, the contact
problem of that step is solved in one iteration, and all velocities become zero. T10 says so of its own start;
here from x = v0 (`free`) and from the step before (`warm`), too. From the start that assumes sticking
contacts (`stick`) no iteration is left to do, since the start is the solution.

In free fall the balls neither press nor part: x = 0, the apex of the friction cone, for each of their
contacts, in the warm start and in x = v0. One iteration is enough if such a contact is tried as sticking;
with (26) for the plane edge instead (`plane`) the shock climbs from contact to contact. Without chord steps
the damping at the start leaves a residual, and it takes four iterations to 1e-10.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom.experiments.balls_in_a_cube import (
    GRAVITY,
    Balls,
    advance,
    contacts_of,
    problem_of,
)
from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.comparison import Table, columns
from implicit_geom.experiments.figures import BLUE, GREY, ORANGE, PAGE, PALETTE, label, panels, paper
from implicit_geom.solvers.contact.t10.options import T10Options
from implicit_geom.solvers.contact.t10.recovery import solve

TITLE = "T10, Fig. 6: a column of five balls falls on the floor"
PARAMS: dict[str, Any] = {"step": 0.005, "duration": 0.5, "mu": 0.5, "height": 0.3}
QUICK: dict[str, Any] = {}

RADIUS = (0.2, 0.12, 0.17, 0.1, 0.14)  # m, from below
WITHIN = 1e-9  # m: rounding does not part the balls
TOLERANCE = 1e-10  # m/s
WAYS = {"stick": ("stick", True), "free": ("free", True), "warm": ("warm", True),
        "free, plane": ("free", False), "warm, plane": ("warm", False)}  # fmt: skip


def column(height: float) -> Balls:
    """The balls, the lowest one at the given height over the floor."""
    r = np.array(RADIUS)
    z = height + 2 * np.cumsum(r) - r
    middle = np.full(len(r), 5.0)
    return Balls(np.stack([middle, middle, z], axis=1), np.zeros((5, 3)), np.zeros((5, 3)), r, 10.0)


def run(params: dict[str, Any]) -> dict[str, Table]:
    rows, summary = [], []
    for way, (start, sticks) in WAYS.items():
        options = T10Options(start="stick" if start == "stick" else "free", apex_sticks=sticks, recovery=())
        part = drop(params, options, warm=start == "warm")
        rows += [(way, *row) for row in part]
        numbers = np.array(part)
        hit = int(np.argmax(numbers[:, 1] == 5))  # the first step with the floor among the contacts
        speed = np.max(np.abs(numbers[hit:, 9:14]))
        summary.append(
            (way, numbers[hit, 0], numbers[hit, 2], numbers[:, 2].max(), speed, numbers[:, 3].max())
        )
    names = ("time", "contacts", "iterations", "residual", *(f"z_{k}" for k in range(1, 6)))
    return {
        "summary": columns(("way", "impact", "iterations", "most_iterations", "speed", "residual"), summary),
        "motion": columns(("way", *names, *(f"v_{k}" for k in range(1, 6))), rows),
    }


def drop(params: dict[str, Any], options: Any, *, warm: bool) -> list[tuple[float, ...]]:
    """Rows of time, contacts, iterations, residual, heights and vertical velocities, one a step."""
    balls, h = column(params["height"]), params["step"]
    last: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = {}
    rows = []
    for k in range(round(params["duration"] / h)):
        contacts = contacts_of(balls, WITHIN)
        system, free = problem_of(balls, contacts, params["mu"], h)
        pairs = [(int(a), int(b)) for a, b in contacts.pair]
        f = v = None
        if warm:  # contacts that are new start from v0
            f = np.array([last[p][0] if p in last else np.zeros(3) for p in pairs])
            v = np.array([last[p][1] if p in last else system.v0[i] for i, p in enumerate(pairs)])
        out = solve(system, TOLERANCE, options, f=f, v=v)
        last = {p: (out.f[i], out.v[i]) for i, p in enumerate(pairs)}
        balls = advance(balls, contacts, free, out.f, h)
        z, v_z = balls.x[:, 2].tolist(), balls.v[:, 2].tolist()
        rows.append((h * (k + 1), float(len(pairs)), float(out.iterations), out.history[-1], *z, *v_z))
    return rows


def check(tables: dict[str, Table]) -> list[Check]:
    t = tables["summary"]
    at = {way: i for i, way in enumerate(t["way"].tolist())}
    checks = []
    for way in ("stick", "free", "warm"):
        i = at[way]
        checks.append(at_most(f"{way}: iterations at the impact", t["iterations"][i], 1))
        checks.append(at_most(f"{way}: iterations of any step", t["most_iterations"][i], 1))
    for way in ("free", "warm"):
        checks.append(at_least(f"{way}: iterations at the impact", t["iterations"][at[way]], 1))
    checks.append(at_most("largest speed from the impact on", np.max(t["speed"]), 1e-9, "m/s"))
    checks.append(at_most("residual of any step", np.max(t["residual"]), TOLERANCE, "m/s"))
    motion = tables["motion"]
    fall = np.sqrt(2 * (motion["z_1"][0] - RADIUS[0]) / GRAVITY)
    checks.append(at_most("time of the impact off free fall", np.max(np.abs(t["impact"] - fall)), 0.01, "s"))
    return checks


@paper
def plot(tables: dict[str, Table]) -> dict[str, Any]:
    figure, axes = panels(1, 2, (PAGE, 2.6))
    places, count = axes[0]
    motion = tables["motion"]
    chosen = motion["way"] == "stick"
    for k in range(1, 6):
        places.plot(motion["time"][chosen], motion[f"z_{k}"][chosen], color=PALETTE[k - 1])
    places.set(xlabel="time, s", ylabel="height of the centres, m", ylim=(0, None))
    label(places, "a", "five balls")
    for way, colour in (("warm", BLUE), ("free", ORANGE), ("warm, plane", GREY)):
        chosen = motion["way"] == way
        count.step(motion["time"][chosen], motion["iterations"][chosen], color=colour, label=way)
    count.set(xlabel="time, s", ylabel="iterations")
    count.legend()
    label(count, "b", "iterations of a step")
    return {"ball_drop": figure}
