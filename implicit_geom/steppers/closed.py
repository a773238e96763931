"""Closed contacts of a solution, as they are listed and as the velocity stage takes them over."""

from __future__ import annotations

import numpy as np

from implicit_geom.contact_group import ContactGroup
from implicit_geom.model import Model, State
from implicit_geom.steppers.solve import ContactRecord

IMPACT_SPEED = 1e-9  # approach at the start of a step, over the speed scale, that counts as an impact
SLIDES = 1e-8  # slip, over the larger of 1 m/s and the speeds at hand, above which a contact slides
SLAP = 1e-2  # jump of a contact along its body, over its size, and approach there that count as an impact


def contact_record(
    model: Model,
    c: int,
    g: ContactGroup,
    seen: dict[str, np.ndarray],
    i: int,
    at: State,
    gap: float,
    stage: int,
) -> ContactRecord:
    """Contact i of a group, pair c of the model, from what its kernel reports; `at` has the poses."""
    pair, dim = model.pairs[c], model.dim
    p_f, slip = np.zeros(3), np.zeros(3)
    where = ["tor".index(name) for name in g.kernel.kind.components]
    p_f[where], slip[where] = seen["p_f"][i], seen["slip"][i]
    sign = -1.0 if pair.swapped else 1.0
    p_f[0] *= sign
    slip[0] *= sign
    n, t, o = (seen[name][i] for name in ("n", "t", "o"))
    point = at.x[pair.second] + seen["r2"][i][:dim]
    p_n = float(seen["p_n"][i, 0])
    return ContactRecord(c, point, sign * n, t.copy(), sign * o, gap, p_n, p_f, slip, stage)
