"""Contact problems with known velocities, and recorded ones.

A body has six velocities, three in the plane; contacts are points at arms from the centres of their bodies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from implicit_geom.solvers.contact.problem import ContactProblem

STEP, GRAVITY = 0.01, 9.81
FALL = STEP * GRAVITY
RECORDED = Path(__file__).parents[1] / "references" / "contact_problems"
AXES = np.array([[0, 0, 1.0], [1, 0, 0], [0, 1, 0]])  # n, t, o


@dataclass
class Case:
    """A problem and the velocities that all its solutions have."""

    problem: ContactProblem
    velocity: np.ndarray


@dataclass
class Contact:
    """Touching at arms from the centres of body `on` and of the body `under` it (None: the ground)."""

    arm: Sequence[float]
    on: int = 0
    under: int | None = None
    arm_under: Sequence[float] = (0, 0, 0)


def spatial(
    masses: Sequence[float],
    contacts: Sequence[Contact],
    v_free: Any,
    *,
    inertia: float = 0.1,
    moments: int = 0,
    **more: Any,
) -> ContactProblem:
    """Bodies in space with inertias `inertia` times their mass; `moments` 1: torsion, 2: rolling."""
    n, d = 6 * len(masses), 3 + moments
    H = np.zeros((n, d * len(contacts)))
    spins = {0: np.zeros((0, 3)), 1: AXES[:1], 2: AXES[1:]}[moments]
    for k, contact in enumerate(contacts):
        for body, arm, sign in ((contact.on, contact.arm, 1), (contact.under, contact.arm_under, -1)):
            if body is None:
                continue
            own = H[6 * body : 6 * body + 6, d * k : d * k + d]
            own[:3, :3] = sign * AXES.T
            own[3:, :3] = sign * np.cross(arm, AXES).T
            own[3:, 3:] = sign * spins.T
    M = np.diag(np.concatenate([[m] * 3 + [m * inertia] * 3 for m in masses]))
    mu = np.broadcast_to(more.pop("mu", 0.5), (len(contacts),))
    return ContactProblem(M=M, H=H, v_free=np.ravel(v_free), mu=mu, dim=d, **more)


def corners(half: float = 0.5, height: float = 0.2, **more: Any) -> list[Contact]:
    """The four corners of a box's lower face."""
    return [Contact((x, y, -height), **more) for x in (-half, half) for y in (-half, half)]


def box(v_free: Sequence[float], **more: Any) -> ContactProblem:
    """A box on its four corners."""
    return spatial([2.0], corners(), [*v_free, 0, 0, 0], **more)


def at_rest() -> Case:
    return Case(box((0, 0, -FALL)), np.zeros(6))


def sliding() -> Case:
    """Coulomb: it loses mu g h."""
    return Case(box((1, 0, -FALL), mu=0.2), np.array([1 - 0.2 * FALL, 0, 0, 0, 0, 0]))


def incline(angle: float, mu: float) -> Case:
    """A box at rest on an incline slides where tan(angle) > mu."""
    down, pressed = FALL * np.sin(angle), FALL * np.cos(angle)
    return Case(box((down, 0, -pressed), mu=mu), np.array([max(0.0, down - mu * pressed), 0, 0, 0, 0, 0]))


def eight_points() -> Case:
    """Twice as many points as can be told apart; the box rests."""
    contacts = corners() + [Contact((*p, -0.2)) for p in ((0.5, 0), (-0.5, 0), (0, 0.5), (0, -0.5))]
    return Case(spatial([1.0], contacts, [0, 0, -FALL, 0, 0, 0]), np.zeros(6))


def stack(masses: Sequence[float]) -> Case:
    """Boxes on each other, at rest."""
    contacts = corners()
    for k in range(1, len(masses)):
        for lower in corners():
            contacts.append(Contact(lower.arm, k, k - 1, (*lower.arm[:2], 0.2)))
    return Case(spatial(masses, contacts, [[0, 0, -FALL, 0, 0, 0]] * len(masses)), np.zeros(6 * len(masses)))


def opening() -> Case:
    return Case(box((0.3, 0, 0.1)), np.array([0.3, 0, 0.1, 0, 0, 0]))


def gap() -> Case:
    """A gap of half of what it falls: it lands, with what is left of the gap over the step as its speed."""
    problem = box((0, 0, -FALL), w=np.tile([0.5 * FALL, 0, 0], 4))
    return Case(problem, np.array([0, 0, -0.5 * FALL, 0, 0, 0]))


def frictionless() -> Case:
    return Case(box((1, 0.5, -1), mu=0.0), np.array([1, 0.5, 0, 0, 0, 0]))


def ellipsoid() -> Case:
    """Across the long axis of the ellipse friction is e times as large."""
    return Case(box((0, 1, -FALL), mu=0.4, e=(1, 0.5)), np.array([0, 1 - 0.2 * FALL, 0, 0, 0, 0]))


def idle_axis() -> Case:
    """An axis of length zero: no friction along it."""
    return Case(box((1, 1e-3, -FALL), mu=0.4, e=(0, 1)), np.array([1.0, 0, 0, 0, 0, 0]))


def plane() -> Case:
    """In the plane: a bar on its two ends, sliding."""
    H = np.zeros((3, 4))
    for k, x in enumerate((-0.5, 0.5)):
        H[:, 2 * k] = 0, 1, x
        H[:, 2 * k + 1] = 1, 0, 0.1
    problem = ContactProblem(M=np.diag([2, 2, 0.3]), H=H, v_free=[1, -FALL, 0], mu=[0.3, 0.3])
    return Case(problem, np.array([1 - 0.3 * FALL, 0, 0]))


def torsion() -> Case:
    """A body that spins on a point below its centre: the moment is e_r mu p_n."""
    v_free = [0, 0, -FALL, 0, 0, 3.0]
    problem = spatial([2.0], [Contact((0, 0, -0.2))], v_free, moments=1, mu=0.4, e=(1, 1, 0.05))
    return Case(problem, np.array([0, 0, 0, 0, 0, 3 - 0.05 * 0.4 * FALL / 0.1]))


def rolling() -> Case:
    """A body that turns about its point of contact: the moment is mu_r p_n."""
    v_free = [0, 0, -FALL, 0.6, 0.8, 0]
    problem = spatial([2.0], [Contact((0, 0, 0))], v_free, moments=2, mu=0.4, mu_r=[0.02])
    lost = 0.02 * FALL / 0.1
    return Case(problem, np.array([0, 0, 0, 0.6 * (1 - lost), 0.8 * (1 - lost), 0]))


def rolling_sticks() -> Case:
    """The same, too slow to keep turning."""
    v_free = [0.01, 0, -FALL, 0.006, 0.008, 0]
    problem = spatial([2.0], [Contact((0, 0, 0))], v_free, moments=2, mu=0.4, mu_r=[0.02])
    return Case(problem, np.zeros(6))


def guided() -> Case:
    """A box that a rail moves sideways at 0.3 m/s: friction is against the sum of both velocities.

    One bilateral row comes twice.
    """
    G = np.zeros((6, 5))
    G[[1, 3, 4, 5, 1], range(5)] = 1, 1, 1, 1, 2
    v, mu = 1.0, 0.2
    for _ in range(50):
        v = 1 - mu * FALL * v / np.hypot(v, 0.3)
    problem = box((1, 0, -FALL), mu=mu, G=G, b=[-0.3, 0, 0, 0, -0.6])
    return Case(problem, np.array([v, 0.3, 0, 0, 0, 0]))


CASES: dict[str, Callable[[], Case]] = {
    "at rest": at_rest,
    "sliding": sliding,
    "sticks on an incline": lambda: incline(0.3, 0.5),
    "slides on an incline": lambda: incline(0.6, 0.5),
    "mu = 2 on a steep incline": lambda: incline(1.0, 2.0),
    "mu = 2, sliding": lambda: incline(1.2, 2.0),
    "eight points": eight_points,
    "stack": lambda: stack([1.0, 1.0, 1.0]),
    "stack, heavy above": lambda: stack([1.0, 1e4]),
    "stack, light above": lambda: stack([1e4, 1.0]),
    "opening": opening,
    "gap": gap,
    "frictionless": frictionless,
    "ellipse": ellipsoid,
    "idle axis": idle_axis,
    "plane": plane,
    "torsion": torsion,
    "rolling": rolling,
    "rolling sticks": rolling_sticks,
    "guided": guided,
}


def recorded(name: str) -> ContactProblem:
    """A problem recorded from bodies in a bin, an arch or a stack."""
    with np.load(RECORDED / f"{name}.npz") as z:
        bodies, contacts = len(z["Mb"]), len(z["b1"])
        H = np.zeros((6 * bodies + 6, 3 * contacts))
        for J, body in ((z["J1"], z["b1"]), (z["J2"], z["b2"])):
            for k in range(contacts):
                H[6 * body[k] : 6 * body[k] + 6 or None, 3 * k : 3 * k + 3] += J[k].T
        M = sp.block_diag(list(z["Mb"]), format="csc")
        mu = np.broadcast_to(z["mu"], (contacts,))
        return ContactProblem(M=M, H=H[:-6], v_free=z["vf"], w=z["w"], mu=mu)
