"""The table of impacts, one row per impact and contact, and the one contact that stands for a pair's points.

An impact is a jump of velocities at one pose. Where bodies touch along a line or a face it acts at several
points of the pair, told apart by their `feature`; so may the stages of RATTLE before it. In `run.contacts` a
pair has one row a step: its points are replaced by one with the same force and moment, but for what no
single point can bear,

    p_n = sum p_n,i     a = sum p_n,i x_i / p_n     p_t = sum p_t,i
    p_r = sum p_r,i + n . sum (x_i - a) x p_t,i     the second part only where the pair has e_r > 0
"""

from __future__ import annotations

import numpy as np

from implicit_geom import rotation
from implicit_geom.model.records import EULER, IMPACT, POSITION, VELOCITY
from implicit_geom.model.solve_arrays import SolveArrays
from implicit_geom.scene.scene import Scene

VECTORS = ("point", "normal", "tangent", "binormal")
IMPULSES = ("p_n", "p_t", "p_o", "p_r")
NUMBERS = ("gap", "approach", "separation", *IMPULSES, "slip_speed", "restitution", "loss")


def impact_table(scene: Scene, solves: SolveArrays, first: int = 0) -> np.ndarray:
    """Structured array of the contacts of all impacts; they are numbered from `first` on."""
    names = np.array(list(scene.bodies))
    rows = solves.contacts[solves.contacts["stage"] == IMPACT]
    out = np.zeros(len(rows), _dtype(scene.dim, names.dtype))
    number = np.cumsum(solves.table["form"] == "impact") - 1
    out["impact"] = first + number[rows["solve"]]
    out["time"] = solves.table["time"][rows["solve"]]
    out["first"], out["second"] = names[rows["first"]], names[rows["second"]]
    for name in (*VECTORS, "gap", "approach", *IMPULSES):
        out[name] = rows[name]
    relative = _relative(solves, rows)
    out["separation"] = np.sum(relative * rows["normal"], axis=1)
    slip = relative - out["separation"][:, None] * rows["normal"]
    out["slip_speed"] = np.linalg.norm(slip, axis=1)
    laws = {
        (a, b): scene.pair_friction(str(a), str(b)).restitution
        for a, b in set(zip(out["first"].tolist(), out["second"].tolist(), strict=True))
    }
    pairs = zip(out["first"].tolist(), out["second"].tolist(), strict=True)
    out["restitution"] = [laws[pair] for pair in pairs]
    begins = np.flatnonzero(np.diff(rows["solve"], prepend=-1))
    out["loss"][begins] = _losses(scene, solves, rows)[rows["solve"][begins]]
    return out


def of_points(stage: np.ndarray | int) -> np.ndarray | bool:
    """Whether the features of contacts of that stage are points of one pair that count as one contact."""
    return (stage == POSITION) | (stage == VELOCITY) | (stage == IMPACT)


def one_point_a_pair(scene: Scene, contacts: np.ndarray, rattle: bool = False) -> np.ndarray:
    """`SolveArrays.contacts` with one row for all points of a pair in an impact, or in a stage of RATTLE.

    rattle   of a RATTLE stepper: also in parts of steps that it took in the end-of-step form
    """
    points = of_points(contacts["stage"]) | (rattle & (contacts["stage"] == EULER))
    if not np.any(points & (contacts["feature"] > 0)):
        return contacts
    rows = contacts[points]
    keys = (rows["solve"] * (int(rows["pair"].max()) + 1) + rows["pair"]) * (IMPACT + 1) + rows["stage"]
    _, group = np.unique(keys, return_inverse=True)
    count = int(group.max()) + 1
    order = np.lexsort((rows["p_n"], group))
    out = rows[order[np.searchsorted(group[order], np.arange(count), side="right") - 1]]  # of the largest p_n
    total = np.bincount(group, rows["p_n"], count)
    each = np.where(total[group] > 0, rows["p_n"], 1.0)
    share = each / np.bincount(group, each, count)[group]
    point = _sums(share[:, None] * rows["point"], group, count)
    across = rows["p_t"][:, None] * rows["tangent"] + rows["p_o"][:, None] * rows["binormal"]
    push = _sums(across, group, count)
    turn = np.bincount(group, rows["p_r"], count)
    if scene.dim == 3:
        names = list(scene.bodies)
        laws = [scene.pair_friction(names[r["first"]], names[r["second"]]) for r in out]
        resists = np.array([law.mu * law.e_r > 0 for law in laws])
        moment = _sums(np.cross(rows["point"] - point[group], across), group, count)
        turn += np.where(resists, np.sum(moment * out["normal"], axis=1), 0.0)
        out["p_o"] = np.sum(push * out["binormal"], axis=1)
    out["p_n"], out["p_r"], out["point"], out["feature"] = total, turn, point, 0
    out["p_t"] = np.sum(push * out["tangent"], axis=1)
    for name in ("gap", "approach"):
        least = np.full(count, np.inf)
        np.minimum.at(least, group, rows[name])
        out[name] = least
    together = np.concatenate([contacts[~points], out])
    return together[np.argsort(together["solve"], kind="stable")]


def _sums(vectors: np.ndarray, group: np.ndarray, count: int) -> np.ndarray:
    out = np.zeros((count, vectors.shape[1]))
    np.add.at(out, group, vectors)
    return out


def _dtype(dim: int, name: np.dtype) -> np.dtype:
    vectors = [(n, "f8", (dim,)) for n in VECTORS]
    bodies = [("first", name), ("second", name)]
    return np.dtype([("impact", "i8"), ("time", "f8"), *bodies, *vectors, *[(n, "f8") for n in NUMBERS]])


def _relative(solves: SolveArrays, rows: np.ndarray) -> np.ndarray:
    """(C, dim) m/s: velocity of `second` past `first` at the point, after the impact."""
    at, velocities = rows["solve"], []
    for body in (rows["first"], rows["second"]):
        r = rows["point"] - solves.x[at, body]
        velocities.append(solves.v[at, body] + rotation.rotational_velocity(solves.w[at, body], r))
    return np.asarray(velocities[1] - velocities[0])


def _losses(scene: Scene, solves: SolveArrays, rows: np.ndarray) -> np.ndarray:
    """(S,) J: kinetic energy before less that after; the velocities before follow from the impulses."""
    dim = scene.dim
    force = rows["p_n"][:, None] * rows["normal"] + rows["p_t"][:, None] * rows["tangent"]
    if dim == 3:
        force = force + rows["p_o"][:, None] * rows["binormal"]
    out = np.zeros(len(solves))
    bodies = list(scene.bodies.values())
    for b in np.unique([rows["first"], rows["second"]]).tolist():
        body = bodies[b]
        if body.fixed:
            continue
        linear, angular = np.zeros((len(solves), dim)), np.zeros((len(solves), 3 if dim == 3 else 1))
        for sign, side in ((-1.0, "first"), (1.0, "second")):
            here = rows[side] == b
            at, own = rows["solve"][here], sign * force[here]
            r = rows["point"][here] - solves.x[at, b]
            np.add.at(linear, at, own)
            if dim == 3:
                about = sign * rows["p_r"][here, None] * rows["normal"][here]
                np.add.at(angular, at, np.cross(r, own) + about)
            else:
                np.add.at(angular, at, (r[:, 0] * own[:, 1] - r[:, 1] * own[:, 0])[:, None])
        v, w = solves.v[:, b], solves.w[:, b]
        if dim == 3:  # body axes
            R_BW = np.swapaxes(rotation.matrix(solves.q[:, b]), -1, -2)
            w, angular = ((R_BW @ a[..., None])[..., 0] for a in (w, angular))
        dv = linear / body.mass
        dw = np.linalg.solve(body.inertia, angular.T).T
        # T- - T+ = dp . (dv / 2 - v+)
        out += np.sum(linear * (dv / 2 - v), axis=1) + np.sum(angular * (dw / 2 - w), axis=1)
    return out
