"""Impact laws of one contact in closed form, independent of the solvers.

In the contact's frame, normal first: u is the velocity of the contact point before the impact, W the
inverse mass seen there, p the impulse, u + W p the velocity after. Coulomb's law holds for the whole
impulse against the slip after it: the contact sticks if that needs no more than mu p_n, otherwise the slip
has a direction d and p_t = -mu p_n d. In the plane d is 1 or -1; in space it is an angle, the root of the
slip across d.

    newton      u_n+ = -e u_n
    poisson     p = p_c + p_d: p_c brings the normal velocity to rest, p_d,n = e p_c,n [Routh]
    energetic   p_d,n = s k p_c,n, where k gives back e^2 of the work of compression [Stronge 1990]

In the last two each phase obeys Coulomb's law by itself, against the slip at its end. Newton's law can gain
energy [Kane, Levinson 1985], and so can the others where the slip reverses within a phase, since friction
then acts along a part of it: in the energetic law s is 1, or the largest s < 1 that gains none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

ANGLES = np.linspace(0, 2 * np.pi, 721)  # between two of these, one direction of slip is looked for
SAME = 1e-9  # relative: impulses this close are one solution
ROUNDING = 1e-12  # relative to the kinetic energy at the contact
PARTS = 256  # of s = 1 in the search of the largest one that gains nothing
SHARP = {"xtol": 1e-15, "rtol": 1e-15}


@dataclass(frozen=True)
class Impulse:
    """p (N s, normal first), and what the law used over e: 1, or s k / e of the energetic one."""

    p: np.ndarray
    factor: float = 1.0


def gain(W: np.ndarray, u: np.ndarray, p: np.ndarray) -> float:
    """Energy that the impulse adds to the body, J."""
    return float(p @ (u + W @ p / 2))


def coulomb(W: np.ndarray, u: np.ndarray, mu: float, normal: float) -> list[np.ndarray]:
    """All impulses after which the normal velocity is `normal` and Coulomb's law holds."""
    if mu == 0:
        p_n = (normal - u[0]) / W[0, 0]
        return [np.array([p_n, *np.zeros(len(u) - 1)])] if p_n > 0 else []
    stick = np.linalg.solve(W, np.array([normal, *np.zeros(len(u) - 1)]) - u)
    found = [stick] if np.linalg.norm(stick[1:]) <= mu * stick[0] else []
    for direction in _directions(W, u, mu, normal):
        ray = np.array([1.0, *(-mu * direction)])
        p = ray * (normal - u[0]) / (W[0] @ ray)
        slides = (u + W @ p)[1:] @ direction > 0
        apart = [np.linalg.norm(p - other) > SAME * np.linalg.norm(p) for other in found]
        if p[0] > 0 and slides and all(apart):
            found.append(p)
    return found


def _directions(W: np.ndarray, u: np.ndarray, mu: float, normal: float) -> list[np.ndarray]:
    """Unit vectors along which the slip after the impact may point, or the opposite way."""
    if len(u) == 2:
        return [np.array([1.0]), np.array([-1.0])]

    def across(angle: float) -> float:
        # times W_n . ray, which may be zero
        c, s = np.cos(angle), np.sin(angle)
        ray = np.array([1.0, -mu * c, -mu * s])
        slip = u[1:] * (W[0] @ ray) + (W[1:] @ ray) * (normal - u[0])
        return float(c * slip[1] - s * slip[0])

    values = np.array([across(angle) for angle in ANGLES])
    changes = np.flatnonzero((values[:-1] >= 0) != (values[1:] >= 0))
    roots = [brentq(across, ANGLES[k], ANGLES[k + 1], **SHARP) for k in changes]
    return [np.array([np.cos(angle), np.sin(angle)]) for angle in roots]


def newton(W: np.ndarray, u: np.ndarray, mu: float, e: float) -> Impulse:
    """Newton's law: a share e of the normal velocity is given back."""
    return Impulse(_only(coulomb(W, u, mu, -e * u[0])))


def poisson(W: np.ndarray, u: np.ndarray, mu: float, e: float) -> Impulse:
    """Poisson's law: decompression has e times the normal impulse of compression."""
    p_c, p_d = _phases(W, u, mu, e)
    return Impulse(p_c + p_d)


def energetic(W: np.ndarray, u: np.ndarray, mu: float, e: float) -> Impulse:
    """Stronge's law: decompression does e^2 times the normal work of compression."""
    if e == 0:
        return poisson(W, u, mu, 0.0)

    def missing(k: float) -> float:
        p_c, p_d = _phases(W, u, mu, k)
        return float(p_d[0] * (u + W @ (p_c + p_d))[0] + e**2 * p_c[0] * u[0])

    high = 1.0
    while missing(high) < 0:
        high *= 2
    k = brentq(missing, 0.0, high, **SHARP)
    found = _without_gain(W, u, lambda s: [sum(_phases(W, u, mu, s * k))])
    return Impulse(found.p, found.factor * k / e)


def _without_gain(W: np.ndarray, u: np.ndarray, at: Callable[[float], list[np.ndarray]]) -> Impulse:
    """The only impulse of at(s), for the largest s <= 1 that gains no energy."""
    scale = u @ np.linalg.solve(W, u) / 2

    def least(s: float) -> float:
        return min([gain(W, u, p) for p in at(s)], default=0.0) - ROUNDING * scale

    if least(1.0) <= 0:
        return Impulse(_only(at(1.0)))
    high = next(k for k in range(PARTS, 0, -1) if least((k - 1) / PARTS) <= 0) / PARTS
    s = brentq(least, high - 1 / PARTS, high, **SHARP)
    return Impulse(_only(at(s)), s)


def _phases(W: np.ndarray, u: np.ndarray, mu: float, k: float) -> tuple[np.ndarray, np.ndarray]:
    """Impulses of compression, to rest, and of decompression, with k times its normal part or more."""
    p_c = _only(coulomb(W, u, mu, 0.0))
    rest = u + W @ p_c
    p_d = _pressed(W, rest, mu, k * p_c[0])
    if (rest + W @ p_d)[0] < ROUNDING * u[0]:  # friction pulls the contact down: it is held instead
        p_d = _only(coulomb(W, rest, mu, 0.0))
    return p_c, p_d


def _pressed(W: np.ndarray, u: np.ndarray, mu: float, p_n: float) -> np.ndarray:
    """The impulse of given normal part: stick, or (C + kappa I) p_t = -slip without it, |p_t| = mu p_n."""
    C, free, most = W[1:, 1:], u[1:] + W[1:, 0] * p_n, mu * p_n
    stick = -np.linalg.solve(C, free)
    if most == 0 or np.linalg.norm(stick) <= most:
        return np.array([p_n, *(stick if most else 0 * stick)])
    unit = np.eye(len(C))
    bound = 2 * np.linalg.norm(free) / most
    kappa = brentq(
        lambda x: np.linalg.norm(np.linalg.solve(C + x * unit, free)) - most, 0, bound, xtol=1e-15 * bound
    )
    return np.array([p_n, *-np.linalg.solve(C + kappa * unit, free)])


def _only(found: list[np.ndarray]) -> np.ndarray:
    """A reference needs a law with one answer."""
    if len(found) != 1:
        raise ArithmeticError(f"{len(found)} impulses obey the law of the impact")
    return found[0]


LAWS: dict[str, Callable[[np.ndarray, np.ndarray, float, float], Impulse]] = {
    "newton": newton,
    "poisson": poisson,
    "energetic": energetic,
}
