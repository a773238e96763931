"""The closed contacts of a step as they are recorded, in the scene's order of bodies."""

from __future__ import annotations

import numpy as np

from implicit_geom.approximate.step import Outcome, Step
from implicit_geom.model import State
from implicit_geom.rattle_problem import TOUCH
from implicit_geom.steppers.closed import SLAP, SLIDES
from implicit_geom.steppers.solve import EULER, LAGGED, ContactRecord

OVERLAP = 1e-12  # over the body's size: a contact that does not press, but is this deep, is listed too


def records(step: Step, found: Outcome, start: State, end: State) -> list[ContactRecord]:
    """Contacts that press, and the deepest overlap that each pair is left with.

    `gap` is the true one at the end of the step, of the surfaces that were used; gap_point, gap_normal and
    start_gap say where the gap of the law was taken.
    """
    finder = step.finder
    stage = LAGGED if step.stepper.wrench == "start" else EULER
    out: list[ContactRecord] = []
    pressed = np.flatnonzero(found.p[:, 0] > 0)
    if pressed.size:
        gaps, wrenches, p = found.gaps, found.wrenches, found.p
        if pressed.size < len(gaps):
            gaps, wrenches, p = gaps.take(pressed), wrenches.take(pressed), p[pressed]
        at_end = finder.again(gaps, end)
        where = start if stage == LAGGED else end
        if stage == EULER:
            wrenches = at_end
        began = gaps if step.stepper.gap == "linearised" else finder.again(gaps, start)
        law = began if step.stepper.gap == "linearised" else at_end
        approach, slid = began.normal_velocity(step.before), began.slip(step.before)
        slid_at_start = np.sqrt(np.sum(slid**2, axis=1)) > SLIDES * max(1.0, step.speed)
        size = np.minimum(step.reach[gaps.first], step.reach[gaps.second])
        impact = (began.gap > TOUCH * size) | (approach < -SLAP * step.speed)
        slip = wrenches.slip(found.nu)
        place = start.x if law is began else end.x
        for k in range(len(gaps)):
            sign = -1.0 if gaps.first[k] > gaps.second[k] else 1.0
            out.append(
                ContactRecord(
                    int(gaps.pair[k]),
                    where.x[wrenches.second[k]] + wrenches.r2[k],
                    sign * wrenches.normal[k],
                    wrenches.tangent[k],
                    sign * wrenches.binormal[k],
                    float(at_end.gap[k]),
                    float(p[k, 0]),
                    _components(p[k, 1:], sign),
                    _components(slip[k], sign),
                    stage,
                    bool(impact[k]),
                    slid=bool(slid_at_start[k]),
                    feature=int(gaps.feature[k]),
                    start_gap=float(began.gap[k]),
                    gap_point=place[law.second[k]] + law.r2[k],
                    gap_normal=sign * law.normal[k],
                )
            )
    return out + _overlaps(step, found, end, stage)


def _overlaps(step: Step, found: Outcome, end: State, stage: int) -> list[ContactRecord]:
    """The deepest contact of each pair that overlaps at the end and is not among those that press."""
    c = found.all
    if not len(c):
        return []
    at_end = step.finder.again(c, end)
    size = np.minimum(step.reach[c.first], step.reach[c.second])
    deep = np.flatnonzero(at_end.gap < -OVERLAP * size)
    if not deep.size:
        return []
    pressed = {
        key
        for key, p_n in zip(zip(found.gaps.pair.tolist(), found.gaps.feature.tolist()), found.p[:, 0])
        if p_n > 0
    }
    worst: dict[int, int] = {}
    for k in deep.tolist():
        if k not in worst or at_end.gap[k] < at_end.gap[worst[int(c.pair[k])]]:
            worst[int(c.pair[k])] = k
    out = []
    zero = np.zeros(3)
    for pair, k in worst.items():
        if (pair, int(c.feature[k])) in pressed:
            continue
        sign = -1.0 if c.first[k] > c.second[k] else 1.0
        point, n = end.x[c.second[k]] + at_end.r2[k], sign * at_end.normal[k]
        axes = at_end.tangent[k], sign * at_end.binormal[k]
        row = ContactRecord(pair, point, n, *axes, float(at_end.gap[k]), 0.0, zero, zero, stage)
        row.feature, row.gap_point, row.gap_normal = int(c.feature[k]), point, n
        out.append(row)
    return out


def _components(values: np.ndarray, sign: float) -> np.ndarray:
    """(3,) along t, o, r; seen from the other body, what is along t changes its sign."""
    out = np.zeros(3)
    out[: values.size] = values
    out[0] *= sign
    return out
