"""Records of the closed contacts of a classical step, in the scene's order of bodies."""

from __future__ import annotations

import numpy as np

from implicit_geom.classical.overlaps import Overlap
from implicit_geom.classical.step import ClassicalStep, StepOutcome
from implicit_geom.equations.thresholds import SLAP, SLIDES, TOUCH
from implicit_geom.model.model import State
from implicit_geom.model.records import EULER, LAGGED, ContactRecord

OVERLAPPED = -1  # the feature of a row that tells of an overlap, and of no contact
OVERLAP = 1e-12  # over the body's size: a contact that does not press, but is this deep, is listed too


def classical_contact_records(
    step: ClassicalStep, found: StepOutcome, start: State, end: State, overlaps: list[Overlap]
) -> list[ContactRecord]:
    """Contacts that press, and the deepest overlap that each pair is left with.

    `overlaps` are the separations of polytopes: a vertex below a face's plane, but beside the face, is not
    inside, and bodies may overlap where no vertex is. `gap` is the true one at the end of the step, of the
    surfaces that were used; gap_point, gap_normal and start_gap say where the gap of the law was taken.
    """
    pressed = np.flatnonzero(found.p[:, 0] > 0)
    out = _pressing(step, found, pressed, start, end) if pressed.size else []
    out += _overlaps(step, found, {(c.pair, c.feature) for c in out}, end)
    return _corrected(step, out, overlaps)


def _corrected(step: ClassicalStep, out: list[ContactRecord], overlaps: list[Overlap]) -> list[ContactRecord]:
    """No gap of a pair of polytopes is less than their separation, and one row has it where they overlap."""
    true = {overlap.pair: overlap for overlap in overlaps}
    listed: dict[int, float] = {}
    for record in out:
        if record.pair in true:
            record.gap = max(record.gap, min(true[record.pair].gap, 0.0))
            listed[record.pair] = min(listed.get(record.pair, 0.0), record.gap)
    for pair, o in true.items():
        size = min(step.reach[o.first], step.reach[o.second])
        if o.gap >= listed.get(pair, 0.0) - OVERLAP * size:
            continue
        sign = -1.0 if o.first > o.second else 1.0
        n = sign * o.normal
        across = np.eye(n.size)[np.argmin(np.abs(n))]
        t = across - (across @ n) * n
        t /= np.linalg.norm(t)
        zero = np.zeros(3)
        binormal = np.cross(n, t) if n.size == 3 else np.zeros(2)
        stage = LAGGED if step.stepper.wrench == "start" else EULER
        row = ContactRecord(pair, o.point, n, t, binormal, o.gap, 0.0, zero, zero, stage)
        row.feature, row.gap_point, row.gap_normal = OVERLAPPED, o.point, n
        out.append(row)
    return out


def _pressing(
    step: ClassicalStep, found: StepOutcome, pressed: np.ndarray, start: State, end: State
) -> list[ContactRecord]:
    finder, lagged = step.finder, step.stepper.wrench == "start"
    linear = step.stepper.gap == "linearised"
    gaps, wrenches, p = found.gaps, found.wrenches, found.p
    if pressed.size < len(gaps):
        gaps, wrenches, p = gaps.take(pressed), wrenches.take(pressed), p[pressed]
    if lagged and linear:
        began, law, end_gap = gaps, gaps, finder.gaps(gaps, end)
    else:
        at_end = finder.at_pose(gaps, end)
        began = gaps if linear else finder.at_pose(gaps, start)
        law, end_gap = gaps if linear else at_end, at_end.gap
        wrenches = wrenches if lagged else at_end
    size = np.minimum(step.reach[gaps.first], step.reach[gaps.second])
    slips = began.slip(step.before)
    slips[:, 2:] *= size[:, None]
    slid = np.abs(slips).max(axis=1) > SLIDES * step.speed
    impact = (began.gap > TOUCH * size) | (began.normal_velocity(step.before) < -SLAP * step.speed)
    sign = np.where(gaps.first > gaps.second, -1.0, 1.0)
    p_f, slip = np.zeros((2, len(gaps), 3))
    p_f[:, : p.shape[1] - 1], slip[:, : p.shape[1] - 1] = p[:, 1:], wrenches.slip(found.nu)
    # seen from the other body, what is along t changes its sign
    p_f[:, 0] *= sign
    slip[:, 0] *= sign
    where, place = (start if lagged else end).x, (start if linear else end).x
    columns = (
        gaps.pair.tolist(),
        where[wrenches.second] + wrenches.r2,
        sign[:, None] * wrenches.normal,
        wrenches.tangent,
        sign[:, None] * wrenches.binormal,
        end_gap.tolist(),
        p[:, 0].tolist(),
        p_f,
        slip,
        [LAGGED if lagged else EULER] * len(gaps),
    )
    out = [ContactRecord(*row) for row in zip(*columns, strict=True)]
    gap_point, gap_normal = place[law.second] + law.r2, sign[:, None] * law.normal
    for k, record in enumerate(out):
        record.impact, record.slid = bool(impact[k]), bool(slid[k])
        record.feature, record.start_gap = int(gaps.feature[k]), float(began.gap[k])
        record.gap_point, record.gap_normal = gap_point[k], gap_normal[k]
    return out


def _overlaps(
    step: ClassicalStep, found: StepOutcome, listed: set[tuple[int, int]], end: State
) -> list[ContactRecord]:
    """The deepest contact of each pair that overlaps at the end, where it is not among those listed."""
    c = found.all
    if not len(c):
        return []
    gap = step.finder.gaps(c, end)
    size = np.minimum(step.reach[c.first], step.reach[c.second])
    deep = np.flatnonzero(gap < -OVERLAP * size)
    if not deep.size:
        return []
    order = deep[np.lexsort((gap[deep], c.pair[deep]))]
    worst = order[np.append(True, np.diff(c.pair[order]) > 0)]
    new = [k for k in worst.tolist() if (int(c.pair[k]), int(c.feature[k])) not in listed]
    if not new:
        return []
    at_end = step.finder.at_pose(c.take(np.array(new)), end)
    stage = LAGGED if step.stepper.wrench == "start" else EULER
    out = []
    for k in range(len(at_end)):
        sign = -1.0 if at_end.first[k] > at_end.second[k] else 1.0
        point, n = end.x[at_end.second[k]] + at_end.r2[k], sign * at_end.normal[k]
        axes = at_end.tangent[k], sign * at_end.binormal[k]
        zero = np.zeros(3)
        row = ContactRecord(
            int(at_end.pair[k]), point, n, *axes, float(at_end.gap[k]), 0.0, zero, zero, stage
        )
        row.feature, row.gap_point, row.gap_normal = int(at_end.feature[k]), point, n
        out.append(row)
    return out
