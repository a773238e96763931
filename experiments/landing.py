"""A box, a coin, a cylinder and a cone dropped at an angle onto a plane until they rest.

One contact a pair carries them through point, line and face contact. Two things to know:

- A patch held by one contact point resists spinning only through e_r. With e_r > 0 the coin stops;
  with e_r = 0 it spins for ever once it lies flat (case `coin, e_r = 0`, dropped flat).
- Nothing resists rolling. The cylinder is dropped with its axis in the plane of its motion, so that
  it comes to lie on its side without rolling; the cone on its side would stop by torsion.

Energy stays below its start. A single step may gain a little while a body rocks on a rim (cone): the
gap is closed at the end of the step, where the normal velocity is of order h and of either sign.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from implicit_geom import Scene, Trajectory, rotation, shapes, simulate
from implicit_geom.experiments.certified import certificate, certificate_checks
from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.figures import BLUE, GREY, PAGE, label, panels, paper, solid

TITLE = "box, coin, cylinder and cone dropped at an angle until they rest"
PARAMS: dict[str, Any] = {"step": 0.0025, "duration": 1.0}
QUICK: dict[str, Any] = {"step": 0.01}

MU, E_R = 0.5, 0.02
KINDS = ("point", "line", "face")
OPEN = -1  # in the column `contact`: no contact
TURN = 1e-6  # rad: a face or a line tilted by less counts as lying on the plane
WIDE = 1e-2  # extent of a line or face, relative to the body


@dataclass(frozen=True)
class Drop:
    """A body, how it starts, and the heights at which its centre of mass can rest."""

    shape: shapes.Shape
    axis: tuple[float, float, float]
    angle: float
    height: float
    velocity: tuple[float, float, float]
    spin: tuple[float, float, float]
    rests: tuple[float, ...]
    e_r: float = E_R


def _cone_rests(radius: float, height: float) -> tuple[float, float]:
    """On its base, and on its side: the centre of mass lies at a quarter of the height."""
    return height / 4, 3 / 4 * height * radius / np.hypot(radius, height)


DISC = shapes.cylinder(0.1, 0.01)
DROPS = {
    "box": Drop(
        shapes.box(0.15, 0.1, 0.06), (1, 0.4, 0.2), 0.7, 0.3, (0.4, 0.2, 0), (0, 0, 0), (0.15, 0.1, 0.06)
    ),
    "coin": Drop(DISC, (1, 0.2, 0), 0.6, 0.2, (0.3, 0, 0), (0, 0, 10), (0.005, 0.1)),
    "cylinder": Drop(shapes.cylinder(0.08, 0.3), (0, 1, 0), 0.9, 0.3, (0.3, 0, 0), (0, 0, 0), (0.08, 0.15)),
    "cone": Drop(
        shapes.cone(0.1, 0.25), (1, 0.3, 0.1), 0.9, 0.3, (0.2, 0.1, 0), (0, 0, 1), _cone_rests(0.1, 0.25)
    ),
    "coin, e_r = 0": Drop(DISC, (1, 0, 0), 0.0, 0.05, (0, 0, 0), (0, 0, 4), (0.005,), e_r=0.0),
}
SPINNING = "coin, e_r = 0"


def scene(drop: Drop) -> Scene:
    s = Scene(gravity=(0, 0, -9.81))
    s.add("plane", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    axis = np.array(drop.axis) / np.linalg.norm(drop.axis)
    s.add(
        "body",
        drop.shape,
        mass=1.0,
        position=(0, 0, drop.height),
        orientation=[np.cos(drop.angle / 2), *(np.sin(drop.angle / 2) * axis)],
        velocity=drop.velocity,
        angular_velocity=drop.spin,
    )
    s.friction(mu=MU, e_r=drop.e_r)
    return s


def run(params: dict[str, Any]) -> dict[str, dict[str, np.ndarray]]:
    runs = {
        name: simulate(
            scene(drop),
            duration=params["duration"],
            step=params["step"],
            stepper="implicit-euler",
            progress=False,
        )
        for name, drop in DROPS.items()
    }
    motions = [_motion(name, r) for name, r in runs.items()]
    motion = {column: np.concatenate([m[column] for m in motions]) for column in motions[0]}
    rows = [_summary(name, r) for name, r in runs.items()]
    summary = {column: np.array([row[column] for row in rows]) for column in rows[0]}
    return {"motion": motion, "summary": summary, "certificate": certificate(runs)}


def _motion(name: str, r: Trajectory) -> dict[str, np.ndarray]:
    body, shape = r["body"], DROPS[name].shape
    contact = np.full(len(r.time), OPEN)
    closed = np.flatnonzero(np.isin(r.time, r.contacts["time"]))
    R = rotation.matrix(body.orientation)
    for k in closed:
        contact[k] = contact_kind(shape, -R[k].T[:, 2])
    columns = {"body": np.full(len(r.time), name), "time": r.time}
    columns |= {axis: body.position[:, i] for i, axis in enumerate("xyz")}
    columns |= {f"q_{c}": body.orientation[:, i] for i, c in enumerate("wxyz")}
    return columns | {
        "w_z": body.angular_velocity[:, 2],
        "fastest_point": _fastest(shape, body, R),
        "energy": r.energy,
        "contact": contact,
    }


def contact_kind(shape: shapes.Shape, direction: np.ndarray) -> int:
    """0, 1, 2 for a point, line or face of the body that is farthest along `direction` (shape's frame).

    The dimension of what the support points of nearby directions span. (The contact point itself
    does not tell: that of a face may lie on the face's edge.)
    """
    t = np.cross(direction, np.eye(3)[np.argmin(np.abs(direction))])
    o = np.cross(direction, t)
    angle = np.linspace(0, 2 * np.pi, 16, endpoint=False)[:, None]
    points = shape.support(direction + TURN * (np.cos(angle) * t + np.sin(angle) * o))
    extents = np.linalg.svd(points - points.mean(axis=0), compute_uv=False) / np.sqrt(len(points))
    return int(np.sum(extents > WIDE * shape.size))


def _fastest(shape: shapes.Shape, body: Any, R: np.ndarray) -> np.ndarray:
    """Speed of the body's fastest surface point at every time."""
    arms = shape.mesh(24)[0] - shape.com
    turning = np.cross(body.angular_velocity[:, None], np.einsum("tij,pj->tpi", R, arms))
    return np.linalg.norm(body.velocity[:, None] + turning, axis=2).max(axis=1)


def _summary(name: str, r: Trajectory) -> dict[str, Any]:
    drop, height = DROPS[name], float(r["body"].position[-1, 2])
    rest = min(drop.rests, key=lambda z: abs(z - height))
    energy = r.energy
    return {
        "body": name,
        "rest_height": rest,
        "height_error": abs(height - rest) / rest,
        "penetration": r.max_penetration / drop.shape.size,
        "gain": np.max(energy - energy[0]) / energy[0],
        "gain_in_a_step": np.max(np.diff(energy)) / energy[0],
        "iterations": int(r.steps["iterations"].sum()),
        "continued": int(np.sum(r.steps["status"] == "continued")),
        "substepped": int(np.sum(r.steps["status"] == "substepped")),
    }


def check(tables: dict[str, dict[str, np.ndarray]]) -> list[Check]:
    summary, motion = tables["summary"], tables["motion"]
    checks = []
    for name in DROPS:
        row = summary["body"] == name
        here = motion["body"] == name
        final = int(motion["contact"][here][-1])
        spinning = name == SPINNING
        if not spinning:
            speed = motion["fastest_point"][here][-1]
            checks.append(at_most(f"{name}: fastest point at the end", speed, 1e-3, "m/s"))
        for column, words, bound in (
            ("height_error", "relative distance from a resting height", 1e-9),
            ("penetration", "penetration / size", 1e-9),
            ("gain", "energy above its start, relative", 1e-9),
            ("gain_in_a_step", "largest gain of energy in a step, relative", 1e-4),
        ):
            checks.append(at_most(f"{name}: {words}", float(summary[column][row][0]), bound))
        rests_on = 1 if name == "cylinder" else 2
        checks.append(at_least(f"{name}: rests on a {KINDS[rests_on]}, dimension", final, rests_on))
        if spinning:
            spin = motion["w_z"][here]
            checks.append(at_most(f"{name}: largest change of its spin", np.ptp(spin), 1e-9, "rad/s"))
    return checks + certificate_checks(tables["certificate"])


@paper
def plot(tables: dict[str, dict[str, np.ndarray]]) -> dict[str, Any]:
    bodies = [name for name in DROPS if name != SPINNING]
    return {"snapshots": _snapshots(tables["motion"], bodies), "energy": _energy(tables["motion"], bodies)}


def _of(motion: dict[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    return {column: values[motion["body"] == name] for column, values in motion.items()}


def _snapshots(motion: dict[str, np.ndarray], bodies: list[str]) -> Any:
    """Each body at six times, from the side and a little from above, each picture centred on the body."""
    times = (0.0, 0.15, 0.22, 0.3, 0.4, 1.0)
    figure, axes = panels(len(bodies), len(times), (PAGE, 5.0))
    for row, name in zip(axes, bodies):
        m = _of(motion, name)
        for axis, time in zip(row, times):
            k = int(np.argmin(np.abs(m["time"] - time)))
            q = np.array([m[f"q_{c}"][k] for c in "wxyz"])
            place = np.array([0.0, 0.0, m["z"][k]])
            vertices, triangles = DROPS[name].shape.mesh(40)
            world = place + (vertices - DROPS[name].shape.com) @ rotation.matrix(q).T
            solid(axis, world, triangles, ground=0.24)
            axis.set(xlim=(-0.25, 0.25), ylim=(-0.08, 0.46), aspect="equal")
            axis.set_axis_off()
            kind = m["contact"][k]
            note = "free" if kind == OPEN else KINDS[kind]
            axis.text(
                0.5, -0.02, note, transform=axis.transAxes, ha="center", va="top", fontsize=8, color=GREY
            )
        row[0].text(-0.05, 0.5, name, transform=row[0].transAxes, rotation=90, ha="right", va="center")
    for axis, time in zip(axes[0], times):
        axis.set_title(f"$t$ = {time:g} s")
    return figure


def _energy(motion: dict[str, np.ndarray], bodies: list[str]) -> Any:
    figure, axes = panels(2, 2, (PAGE, 3.8), sharex=True, sharey=True)
    shades = {0: "#fde3c4", 1: "#d5e8d4", 2: "#cfe0f3"}
    for axis, letter, name in zip(axes.ravel(), "abcd", bodies):
        m = _of(motion, name)
        t, contact = m["time"], m["contact"]
        changes = np.flatnonzero(np.diff(contact))
        for first, last in zip([0, *changes], [*changes, len(t) - 1]):
            if contact[last] != OPEN:
                axis.axvspan(t[first], t[last], color=shades[contact[last]], linewidth=0)
        axis.plot(t, m["energy"] / m["energy"][0], color=BLUE, label="energy")
        axis.set(xlim=(0, t[-1]), ylim=(0, 1.05))
        axis.grid(False)
        label(axis, letter, name)
    for axis in axes[:, 0]:
        axis.set(ylabel="energy / its start")
    for axis in axes[1]:
        axis.set(xlabel="time, s")
    for kind, shade in shades.items():
        axes[0, 0].fill_between([], [], color=shade, linewidth=0, label=KINDS[kind])
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure
