"""An ellipse that rolls without slip on a line, integrated in its one coordinate.

With the angle th, the height h of the centre and the contact's offset h' = dh/dth,

    h = sqrt(a^2 sin^2 + b^2 cos^2),   I = J + m (h^2 + h'^2)
    I th'' + I' th'^2 / 2 + m g h' = 0,   x' = -h th'

The energy I th'^2 / 2 + m g h is constant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

TOLERANCE = 1e-12  # of the integration, relative


@dataclass(frozen=True)
class Rolling:
    """Half-axes a (along x at th = 0) and b in m, mass in kg, gravity in m/s^2, spin at th = 0 in rad/s."""

    a: float
    b: float
    mass: float
    gravity: float
    spin: float

    def height(self, th: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """h, h' and h''."""
        k = self.a**2 - self.b**2
        h = np.sqrt((self.a * np.sin(th)) ** 2 + (self.b * np.cos(th)) ** 2)
        slope = k * np.sin(th) * np.cos(th) / h
        return h, slope, (k * np.cos(2 * th) - slope**2) / h

    def acceleration(self, th: np.ndarray, w: np.ndarray) -> np.ndarray:
        """th'', rad/s^2."""
        h, slope, bend = self.height(th)
        inertia = self.mass * (self.a**2 + self.b**2) / 4 + self.mass * (h**2 + slope**2)
        change = 2 * self.mass * slope * (h + bend)
        return np.asarray(-(change * w**2 / 2 + self.mass * self.gravity * slope) / inertia)

    def motion(self, times: np.ndarray) -> np.ndarray:
        """(T, 4): x, y of the centre, angle, spin at the times."""

        def rate(_: float, state: np.ndarray) -> list[float]:
            th, w, _x = state
            return [w, float(self.acceleration(th, w)), -w * float(self.height(th)[0])]

        found = solve_ivp(
            rate, (0, times[-1]), [0.0, self.spin, 0.0], "DOP853", times, rtol=TOLERANCE, atol=1e-13
        )
        th, w, x = found.y
        return np.stack([x, self.height(th)[0], th, w], axis=1)

    def forces(self, motion: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Normal force and friction, N, of a motion."""
        _, h, th, w = motion.T
        _, slope, bend = self.height(th)
        turn = self.acceleration(th, w)
        up = slope * turn + bend * w**2
        along = -(h * turn + slope * w**2)
        return self.mass * (self.gravity + up), self.mass * along
