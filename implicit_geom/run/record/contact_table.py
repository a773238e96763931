"""The table of closed contacts, one row per step and contact, made from the solves.

A pair has one contact, or several under a classical stepper, told apart by `feature`. Impulses act on
`second` and are those of the whole step: where a step was taken in parts, or in two stages, they are summed
over them, component by component, those of impacts too (`run.record.impact_table` says how the points of a
pair become one). Everything else in a row belongs to the last part in which the contact was closed. A
contact that carried no impulse is not listed.

A contact slides if a direction in which friction acts has used up its friction and moves, or if a
direction without friction moves; otherwise it sticks:

    slide   |(p_t/e_t, p_o/e_o, p_r/e_r)| >= (1 - 1e-6) mu p_n  and  |(e_t v_t, e_o v_o, e_r v_r)| >= slow,
            or |v_t| >= slow where mu e_t = 0, or |v_o| >= slow where mu e_o = 0

(under a friction pyramid, and after an impact, a contact that moves has used up its friction, whatever
the sum) with slow = 1e-9 of the speeds at hand: of the bodies' fastest points, and what gravity adds in a
step.
Both margins stand above what the default tolerance of 1e-10 leaves undecided: it is relative to
speeds, while a step's impulses may be small beside them; they grow with a larger tolerance.
"""

from __future__ import annotations

import numpy as np

from implicit_geom.model.records import IMPACT, LAGGED
from implicit_geom.model.solve_arrays import SolveArrays
from implicit_geom.run.record.impact_table import IMPULSES, one_point_a_pair
from implicit_geom.scene.scene import Scene
from implicit_geom.scene.switches import Stepper

INSIDE = 1e4  # times the tolerance: relative distance from the friction ellipsoid that counts as inside
SLOW = 10  # times the tolerance: slip below this, relative to the speeds at hand, counts as none


def contact_table(
    scene: Scene, solves: SolveArrays, times: np.ndarray, tolerance: float, switches: Stepper
) -> np.ndarray:
    """Structured array of closed contacts; `times` are the ends of the steps, `tolerance` the solver's."""
    pyramid = switches.friction == "pyramid"
    raw = one_point_a_pair(scene, solves.contacts, switches.integrator.startswith("rattle"))
    step = solves.table["step"][raw["solve"]]
    group = _groups(step, raw["pair"], raw["feature"])
    count = int(group.max(initial=-1)) + 1
    last = np.zeros(count, int)
    np.maximum.at(last, group, np.arange(len(raw)))
    names = np.array(list(scene.bodies))
    out = np.zeros(count, _dtype(scene.dim, names.dtype))
    rows = raw[last]
    out["time"] = times[step[last]]
    out["first"], out["second"] = names[rows["first"]], names[rows["second"]]
    out["feature"] = rows["feature"]
    for name in ("point", "normal", "tangent", "binormal", "gap"):
        out[name] = rows[name]
    for name in IMPULSES:
        np.add.at(out[name], group, raw[name])
    slip, speed = _slip(scene, solves, rows)
    out["slip_speed"] = np.linalg.norm(slip, axis=1)
    slides = _slides(scene, names, rows, slip, speed, tolerance, pyramid and scene.dim == 3)
    out["mode"] = np.where(slides, "slide", "stick")
    return out[out["p_n"] > 0]


def _groups(step: np.ndarray, pair: np.ndarray, feature: np.ndarray) -> np.ndarray:
    """A number for each row, equal where step, pair and feature are, in their order."""
    pairs = int(pair.max(initial=0)) + 1
    group = np.unique(step * pairs + pair, return_inverse=True)[1]
    if not np.any(feature):
        return np.asarray(group)
    features = np.unique(feature, return_inverse=True)[1]
    return np.asarray(np.unique(group * (features.max() + 1) + features, return_inverse=True)[1])


def _dtype(dim: int, name: np.dtype) -> np.dtype:
    vectors = [(n, "f8", (dim,)) for n in ("point", "normal", "tangent", "binormal")]
    numbers = [(n, "f8") for n in ("gap", *IMPULSES, "slip_speed")]
    bodies = [("first", name), ("second", name), ("feature", "i8")]
    return np.dtype([("time", "f8"), *bodies, *vectors, *numbers, ("mode", "U5")])


def _slip(scene: Scene, solves: SolveArrays, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Velocity of `second` past `first` in the tangent plane (C, dim), and the speeds at hand (C,)."""
    at = rows["solve"]
    velocities, speeds = [], []
    sizes = np.array([b.shape.size if np.isfinite(b.shape.size) else 0.0 for b in scene.bodies.values()])
    pulled = float(np.linalg.norm(scene.gravity)) * np.abs(solves.table["h"][at])
    for body in (rows["first"], rows["second"]):
        r = rows["point"] - solves.x[at, body]
        w, v = solves.w[at, body], solves.v[at, body]
        turning = np.cross(w, r) if r.shape[1] == 3 else w * np.column_stack([-r[:, 1], r[:, 0]])
        velocities.append(v + turning)
        speeds.append(np.linalg.norm(v, axis=1) + sizes[body] * np.linalg.norm(w, axis=1) + pulled)
    relative = velocities[1] - velocities[0]
    n = rows["normal"]
    slip = relative - np.einsum("ij,ij->i", relative, n)[:, None] * n
    # where impulses act at the start, the slip is that of the step's law
    law = rows["v_t"][:, None] * rows["tangent"] + rows["v_o"][:, None] * rows["binormal"]
    slip = np.where((rows["stage"] == LAGGED)[:, None], law, slip)
    return slip, np.maximum(*speeds)


def _slides(
    scene: Scene,
    names: np.ndarray,
    rows: np.ndarray,
    slip: np.ndarray,
    speed: np.ndarray,
    tolerance: float,
    pyramid: bool,
) -> np.ndarray:
    """Whether each contact slides, by the rule above."""
    laws = {
        (a, b): scene.pair_friction(str(names[a]), str(names[b]))
        for a, b in set(zip(rows["first"].tolist(), rows["second"].tolist(), strict=True))
    }
    each = [laws[pair] for pair in zip(rows["first"].tolist(), rows["second"].tolist(), strict=True)]
    mu = np.array([law.mu for law in each])
    components = ("t",) if scene.dim == 2 else ("t", "o", "r")
    tolerance = max(tolerance, 1e-10)
    slow = np.maximum(SLOW * tolerance * speed, 1e-300)  # (at rest nothing slides)
    scaled_impulse, scaled_slip = np.zeros(len(rows)), np.zeros(len(rows))
    free = np.zeros(len(rows), bool)
    along = {"t": rows["tangent"], "o": rows["binormal"]}
    for c in components:
        e = np.array([getattr(law, f"e_{c}") for law in each]) * (mu > 0)
        held = e > 0
        v = rows["v_r"] if c == "r" else np.einsum("ij,ij->i", slip, along[c])
        scaled_impulse += np.where(held, rows[f"p_{c}"] / np.where(held, e, 1.0), 0.0) ** 2
        scaled_slip += np.where(held, e * v, 0.0) ** 2
        if c != "r":
            free |= ~held & (np.abs(v) >= slow)
    limit = max(1 - INSIDE * tolerance, 0.0) * mu * rows["p_n"]
    spent = (np.sqrt(scaled_impulse) >= limit) | pyramid | (rows["stage"] == IMPACT)
    return np.asarray(free | (spent & (np.sqrt(scaled_slip) >= slow)))
