"""How large, small, far and fast things may be, so that double precision still tells a gap from none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from implicit_geom.interface.errors import SceneError
from implicit_geom.interface.numbers import LARGEST

if TYPE_CHECKING:
    from implicit_geom.model.model import Model, State

SMALLEST = 1 / LARGEST  # of masses and inertias, whose inverses are needed
# A gap is a difference of positions, exact to 1.1e-16 of them: at this many sizes of a body it is known to
# a millionth of the size. Bodies of 1 mm are thus legal up to 1e7 m from the origin.
FAR = 1e10


def check_place(field: str, position: np.ndarray, size: float) -> None:
    """Refuse a bounded body so far from the origin that its gaps would be rounding."""
    far = float(np.linalg.norm(position))
    if np.isfinite(size) and far > FAR * size:
        raise SceneError(
            f"{field}: {far:.3g} m from the origin is {far / size:.1g} times the size of the body; beyond "
            f"{FAR:g} times a gap is lost in rounding: put the origin near the bodies"
        )


def check_scales(model: Model, state: State, step: float) -> None:
    """Refuse a start, or a step, in which no gap could be kept: far bodies, or motions of many sizes."""
    for i, body in enumerate(model.bodies):
        size = float(model.size[i])
        check_place(f"bodies.{body.name}.position", state.x[i], size)
        if body.fixed:
            continue
        speed = float(np.linalg.norm(state.v[i]) + np.linalg.norm(model.scene.gravity) * step)
        turned = float(np.linalg.norm(state.w[i])) * step
        if speed * step > FAR * (size if np.isfinite(size) else 1.0) or turned > FAR:
            raise SceneError(
                f"step = {step:g} s: bodies.{body.name} would move by {speed * step:.3g} m and turn by "
                f"{turned:.3g} rad in it, more than {FAR:g} times its size: take a shorter step"
            )
