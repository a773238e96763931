"""Closed contacts of a solution, as they are listed and as the velocity stage takes them over."""

from __future__ import annotations

from itertools import repeat

import numpy as np

from implicit_geom.model.contact_group import ContactGroup
from implicit_geom.model.model import Model, State
from implicit_geom.model.records import ContactRecord


def contact_records(
    model: Model,
    g: ContactGroup,
    seen: dict[str, np.ndarray],
    chosen: np.ndarray,
    at: State,
    gap: np.ndarray,
    stage: int,
) -> list[ContactRecord]:
    """The chosen contacts of a group, with these gaps, from what its kernel reports; `at` has the poses."""
    dim = model.dim
    p_f, slip = np.zeros((2, len(chosen), 3))
    where = ["tor".index(name) for name in g.kernel.kind.components]
    p_f[:, where], slip[:, where] = seen["p_f"][chosen], seen["slip"][chosen]
    sign = np.where(g.swapped[chosen], -1.0, 1.0)
    p_f[:, 0] *= sign
    slip[:, 0] *= sign
    n, t, o = (seen[name][chosen] for name in ("n", "t", "o"))
    columns = (
        g.numbers[chosen].tolist(),
        at.x[g.second[chosen]] + seen["r2"][chosen][:, :dim],
        sign[:, None] * n,
        t,
        sign[:, None] * o,
        gap.tolist(),
        seen["p_n"][chosen, 0].tolist(),
        p_f,
        slip,
        repeat(stage, len(chosen)),
    )
    return [ContactRecord(*row) for row in zip(*columns, strict=True)]
