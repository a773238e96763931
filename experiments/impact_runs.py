"""Runs through impacts: as they are compared with the event-driven references."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from implicit_geom import Trajectory, simulate
from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.comparison import Table, columns, turn_between
from implicit_geom.experiments.event_driven import Body, State, first_impacts, states_at
from implicit_geom.experiments.regression import order

IMPACT = "impact"  # the form of a solve that is an impact: of no length, at one pose
NAMES = ("case", "stepper", "impacts", "step", "position", "turn", "velocity", "spin")
TOO_GOOD = 1.0  # above the least order that is asked for
STATES = ("position", "turn", "velocity", "spin")


def through(
    body: Body, start: State, duration: float, step: float, stepper: str = "implicit-rattle"
) -> Trajectory:
    """The body from a state, by a stepper; laws are those of the RATTLE steppers alone.

    Steps of order four are solved to what rounding allows: the default would be seen in their errors.
    """
    rattle = stepper in ("implicit-rattle", "implicit-rattle-4")
    law = {"impact_law": body.law, "impacts": "events"} if rattle else {}
    close = {"tolerance": 1e-13} if stepper == "implicit-rattle-4" else {}
    scene = body.scene(start)
    return simulate(scene, duration=duration, step=step, stepper=stepper, progress=False, **law, **close)


def end_of(run: Trajectory, name: str = "body") -> State:
    """The last state of a body."""
    motion = run[name]
    return State(
        float(run.time[-1]),
        motion.position[-1],
        motion.orientation[-1],
        motion.velocity[-1],
        np.atleast_1d(motion.angular_velocity[-1]),
    )


def recorded(run: Trajectory, name: str = "body") -> list[tuple[State, State]]:
    """The states of a body before and after every impact of the run."""
    solves, i = run.solves, run.names.index(name)
    path = solves.path(run.initial)

    def state(k: int, time: float) -> State:
        return State(time, path.x[k][i], path.q[k][i], path.v[k][i], path.w[k][i])

    rows = np.flatnonzero(solves.table["form"] == IMPACT)
    times = solves.table["time"][rows].tolist()
    return [(state(k, t), state(k + 1, t)) for k, t in zip(rows.tolist(), times)]


def apart(found: State, exact: State) -> tuple[float, float, float, float]:
    """Differences of position (m), orientation (rad), velocity (m/s) and spin (rad/s)."""
    if len(found.x) == 3:
        turn = float(turn_between(found.q, exact.q))
    else:
        turn = abs(float(found.q - exact.q))
    return (
        float(np.linalg.norm(found.x - exact.x)),
        turn,
        float(np.linalg.norm(found.v - exact.v)),
        float(np.linalg.norm(found.w - exact.w)),
    )


def errors_after(
    cases: dict[str, tuple[Body, State]], steps: dict[str, tuple[float, ...]], impacts: tuple[int, ...]
) -> Table:
    """Errors halfway from each of these impacts to the next, for every case, stepper and step.

    A step is shortened so that the time of comparison is a multiple of it.
    """
    rows: list[tuple[Any, ...]] = []
    for case, (body, start) in cases.items():
        found = first_impacts(body, start, 100.0, max(impacts) + 1)
        instants = [impact.before.time for impact in found]
        for count in impacts:
            time = (instants[count - 1] + instants[count]) / 2
            (exact,) = states_at(body, start, np.array([time]))
            for stepper, sizes in steps.items():
                for h in whole_steps(time, sizes):
                    end = end_of(through(body, start, time, h, stepper))
                    rows.append((case, stepper, count, h, *apart(end, exact)))
    return columns(NAMES, rows)


def whole_steps(time: float, sizes: tuple[float, ...]) -> list[float]:
    """The steps, shortened so that each fits into the time a whole number of times."""
    return [time / np.ceil(time / h) for h in sizes]


def orders(errors: Table, stepper: str, count: int, quantity: str) -> dict[str, float]:
    """The measured order of a quantity after so many impacts, by case."""
    found = {}
    for case in dict.fromkeys(errors["case"].tolist()):
        rows = (errors["case"] == case) & (errors["stepper"] == stepper) & (errors["impacts"] == count)
        if len(set(errors["step"][rows].tolist())) > 1:
            found[case] = order(errors["step"][rows], errors[quantity][rows])
    return found


def order_checks(words: str, found: Iterable[float], least: float) -> list[Check]:
    """Orders that are at least so high, and not too good to be one.

    An error that falls faster than its order says that the long steps went another way than the short ones.
    """
    values = list(found)
    return [
        at_least(f"{words}, order", min(values), least),
        at_most(f"{words}, order, no higher than the method's", max(values), least + TOO_GOOD),
    ]
