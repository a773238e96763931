"""How large, small, far and fast things may be, so that double precision still tells a gap from none."""

from __future__ import annotations

import numpy as np

from implicit_geom.interface.errors import SceneError
from implicit_geom.interface.numbers import LARGEST

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
