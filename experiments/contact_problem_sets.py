"""Contact problems that solvers are measured on: recorded in bins, stacks and arches, and made here.

recorded   bodies that fall into a bin and settle, stacks, an arch, wedges, mass ratios of 1e4; 2 to 125
           bodies, mu 0.1 to 1, h = 0.01 s, several points on a flat patch (another simulator detected the
           contacts): `references/contact_problems.npz`
small      one to three bodies with one to eight contacts anywhere, mu 0 to 2
eight      a box on eight points, pushed and turned: more contacts than it can move
ratio      boxes on each other, light under heavy, a factor of 1e4 between them
discs      the first step of a heap of discs [AH02]
piles      the same of 30 rows, 465 discs that stay at rest
scenes     spheres and ellipsoids that fall into a bin, heaps of discs [AH02] on their way, stacks, bricks, an
           arch, wedges and a chain of ours, mass ratios of 1e4: `references/scene_problems.npz`, which
           `contact_scenes` makes
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from implicit_geom.contact.velocity_problem import contact_problem
from implicit_geom.experiments.piles import pile
from implicit_geom.solvers.contact.problem import ContactProblem

RECORDED = Path(__file__).parent / "references" / "contact_problems.npz"
SCENES = Path(__file__).parent / "references" / "scene_problems.npz"
STEP, FALL = 0.01, 0.0981  # s, and m/s that gravity adds in it


def problems(every: int = 1) -> Iterator[tuple[str, str, ContactProblem]]:
    """Family, name and problem; every n-th of each family."""
    for family, file in (("recorded", RECORDED), ("scenes", SCENES)):
        for name, make in ((n, m) for k, (n, m) in enumerate(recorded(file)) if k % every == 0):
            yield family, name, make()
    makers = {"small": (_small, 80), "eight": (_eight, 24), "ratio": (_ratio, 20), "discs": (_discs, 24)}
    makers["piles"] = (_piles, 2)
    for family, (maker, count) in makers.items():
        for k in range(0, count, every):
            yield family, f"{family} {k}", maker(k)


def recorded(file: Path) -> Iterator[tuple[str, Callable[[], ContactProblem]]]:
    """Names of a file's problems, and what makes them."""
    with np.load(file) as data:
        names = sorted({key.split("/")[0] for key in data.files})
        for name in names:
            parts = {key: data[f"{name}/{key}"] for key in ("Mb", "vf", "b1", "b2", "J1", "J2", "w", "mu")}
            yield name, lambda parts=parts: _assembled(**parts)


def _assembled(
    Mb: np.ndarray,
    vf: np.ndarray,
    b1: np.ndarray,
    b2: np.ndarray,
    J1: np.ndarray,
    J2: np.ndarray,
    w: np.ndarray,
    mu: np.ndarray,
) -> ContactProblem:
    """u = J1 v1 + J2 v2 + w; a body of number -1 is the ground."""
    rows, columns, values = [], [], []
    d, size = J1.shape[1:]
    for J, body in ((J1, b1), (J2, b2)):
        k = np.flatnonzero(body >= 0)
        own = np.broadcast_to(size * body[k][:, None, None] + np.arange(size), (len(k), d, size))
        at = np.broadcast_to(d * k[:, None, None] + np.arange(d)[:, None], (len(k), d, size))
        rows.append(own.ravel())
        columns.append(at.ravel())
        values.append(J[k].ravel())
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    H = sp.coo_matrix(entries, shape=(size * len(Mb), d * len(b1)))
    M = sp.block_diag(list(Mb), format="csc")
    return ContactProblem(M=M, H=H, v_free=vf, w=w, mu=np.broadcast_to(mu, (len(b1),)))


def _jacobian(n: np.ndarray, arm: np.ndarray) -> np.ndarray:
    """(3, 6): velocities of a point along n, t, o by those of its body."""
    t = np.cross(n, np.eye(3)[np.argmin(np.abs(n))])
    t /= np.linalg.norm(t)
    frame = np.array([n, t, np.cross(n, t)])
    return np.hstack([frame, np.cross(arm, frame)])


def _body(mass: float, half: np.ndarray) -> np.ndarray:
    """Mass matrix of a box with these half-lengths."""
    square = half**2
    return np.diag([mass] * 3 + list(mass / 3 * (square.sum() - square)))


def _small(seed: int) -> ContactProblem:
    rng = np.random.default_rng(seed)
    bodies, contacts = 1 + seed % 3, 1 + seed % 8
    half = rng.uniform(0.05, 0.3, (bodies, 3))
    Mb = np.array([_body(rng.uniform(0.5, 2.0), h) for h in half])
    b2 = rng.integers(0, bodies, contacts)
    b1 = np.array([rng.choice([-1, *(b for b in range(bodies) if b != k)]) for k in b2])
    J1, J2 = np.zeros((2, contacts, 3, 6))
    for k in range(contacts):
        n = rng.normal(size=3)
        n /= np.linalg.norm(n)
        J2[k] = _jacobian(n, -half[b2[k]] * n)
        J1[k] = -_jacobian(n, half[b1[k]] * n)
    w = np.zeros(3 * contacts)
    w[::3] = rng.uniform(0, 0.05, contacts) * (rng.uniform(size=contacts) < 0.3)
    mu = np.full(contacts, (0.0, 0.1, 0.5, 1.0, 2.0)[seed % 5])
    return _assembled(Mb, rng.normal(scale=0.5, size=6 * bodies), b1, b2, J1, J2, w, mu)


def _eight(seed: int) -> ContactProblem:
    rng = np.random.default_rng(1000 + seed)
    half = np.array([0.2, 0.15, 0.1])
    around = [(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1) if (x, y) != (0, 0)]
    J2 = np.array([_jacobian(np.array([0, 0, 1.0]), half * (x, y, -1)) for x, y in around])
    vf = rng.normal(scale=0.3, size=6) * (seed % 4 > 0)
    vf[2] -= FALL
    none = np.full(8, -1)
    mu = (0.1, 0.5, 1.0, 2.0)[seed % 4 if seed < 12 else 3]
    parts = np.zeros_like(J2), J2, np.zeros(24), np.full(8, mu)
    return _assembled(_body(1.0, half)[None], vf, none, np.zeros(8, int), *parts)


def _ratio(seed: int) -> ContactProblem:
    rng = np.random.default_rng(2000 + seed)
    bodies = 2 + seed % 6
    half = np.array([0.1, 0.1, 0.1])
    heavy = 1e4 if seed % 2 else 1.0
    Mb = np.array([_body(1.0 if k % 2 == 0 else heavy, half) for k in range(bodies)])
    corners = [(x, y) for x in (-1, 1) for y in (-1, 1)]
    up = np.array([0, 0, 1.0])
    J2 = np.array([_jacobian(up, half * (x, y, -1)) for _ in range(bodies) for x, y in corners])
    J1 = -np.array([_jacobian(up, half * (x, y, 1)) for _ in range(bodies) for x, y in corners])
    b2 = np.repeat(np.arange(bodies), 4)
    vf = np.tile([0, 0, -FALL, 0, 0, 0], bodies) + rng.normal(scale=0.02, size=6 * bodies)
    count = 4 * bodies
    mu = np.full(count, (0.1, 0.5, 1.0, 2.0)[seed % 4])
    return _assembled(Mb, vf, b2 - 1, b2, J1, J2, np.zeros(3 * count), mu)


def _discs(seed: int) -> ContactProblem:
    return contact_problem(pile(3 + seed // 4, (0.1, 0.3, 0.5, 0.8)[seed % 4]), step=STEP)


def _piles(seed: int) -> ContactProblem:
    return contact_problem(pile(30, (0.6, 0.8)[seed]), step=STEP)
