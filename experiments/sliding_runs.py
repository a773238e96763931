"""What the experiments against the sliding reference share: runs over several steps, errors, the ledger."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from implicit_geom import Scene, Trajectory, shapes, simulate
from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.comparison import Table, columns, rows_at
from implicit_geom.experiments.ellipsoid_reference import rotation
from implicit_geom.experiments.figures import BLUE, GREEN, GREY, ORANGE, PAGE, PURPLE, RED, label, panels
from implicit_geom.experiments.motion_figures import COLOURS, MARKERS, order_figure
from implicit_geom.experiments.regression import order
from implicit_geom.experiments.sliding_reference import Body, Friction, Motion, integrate, touching

Runs = dict[tuple[str, float], Trajectory]  # by stepper and step
FORMS = {"implicit-euler": "euler", "implicit-rattle": "rattle", "implicit-rattle-4": "rattle-4"}
TITLES = {"position": "position", "spin": "spin", "energy": "energy", "jellett": "Jellett quantity"}
UNIT = {"position": "m", "velocity": "m/s", "spin": "rad/s", "energy": "J", "friction": "J"}


@dataclass(frozen=True)
class Start:
    """A body that touches the plane z = 0 and slides, for the stepper and for the reference alike."""

    shape: shapes.Shape
    body: Body
    friction: Friction
    orientation: np.ndarray
    angular_velocity: np.ndarray

    def scene(self) -> Scene:
        x, v = touching(self.body, self.orientation, self.angular_velocity)
        s = Scene(gravity=(0, 0, -self.body.gravity))
        s.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
        s.add(
            "body",
            self.shape,
            mass=self.body.mass,
            inertia=self.body.inertia,
            com=self.body.com,
            position=x,
            orientation=self.orientation,
            velocity=v,
            angular_velocity=self.angular_velocity,
        )
        s.friction(mu=self.friction.mu, e_r=self.friction.e_r)
        return s

    def run(self, stepper: str, h: float, duration: float) -> Trajectory:
        return simulate(self.scene(), duration=duration, step=h, stepper=stepper, progress=False)

    def runs(self, steps: dict[str, tuple[float, ...]], duration: float) -> Runs:
        """A run for every stepper and each of its steps."""
        return {(name, h): self.run(name, h, duration) for name, hs in steps.items() for h in hs}

    def reference(self, times: np.ndarray) -> Motion:
        x, v = touching(self.body, self.orientation, self.angular_velocity)
        return integrate(
            self.body,
            self.friction,
            position=x,
            orientation=self.orientation,
            velocity=v,
            angular_velocity=self.angular_velocity,
            times=times,
        )


def axes_of(orientation: np.ndarray) -> np.ndarray:
    """(T, 3) the body's z axis in the world."""
    return np.array([rotation(q)[:, 2] for q in orientation])


def tilt_of(axis: np.ndarray) -> np.ndarray:
    """(T,) rad between the body's axis, either way, and the vertical."""
    return np.arctan2(np.hypot(axis[:, 0], axis[:, 1]), np.abs(axis[:, 2]))


def precession_of(axis: np.ndarray, w: np.ndarray) -> np.ndarray:
    """(T,) rad/s: how fast the axis turns about the vertical, with a' = w x a."""
    rate = np.cross(w, axis)
    return (axis[:, 0] * rate[:, 1] - axis[:, 1] * rate[:, 0]) / (axis[:, 0] ** 2 + axis[:, 1] ** 2)


def every(motion: Motion, count: int) -> Motion:
    """Each count-th time of a reference."""
    return Motion(*(getattr(motion, field.name)[::count] for field in fields(motion)))


def errors(runs: Runs, exact: Motion) -> Table:
    """One row a run: the largest distance from the reference at any of its times, by quantity.

    friction is the ledger's loss so far against the reference's, remainder the ledger's sum of what it
    cannot attribute, impact its sum of losses by impact; other_forms counts steps of another form.
    """
    rows = []
    for (stepper, h), run in runs.items():
        at, body = rows_at(run.time, exact.time), run["body"]
        lost = np.concatenate([[0.0], np.cumsum(run.ledger["friction"])])
        rows.append(
            (
                stepper,
                h,
                _largest(body.position[at] - exact.position),
                _largest(body.velocity[at] - exact.velocity),
                _largest(body.angular_velocity[at] - exact.angular_velocity),
                np.max(np.abs(run.energy[at] - exact.energy)),
                np.max(np.abs(lost[at] - exact.friction_loss)),
                np.max(np.abs(np.cumsum(run.ledger["remainder"]))),
                np.sum(run.ledger["impact"]),
                int(np.sum(run.good_steps["form"] != FORMS[stepper])),
                float(np.mean(run.good_steps["iterations"])),
                1e3 * float(np.mean(run.good_steps["wall_time"])),
            )
        )
    names = ("stepper", "step", *UNIT, "remainder", "impact", "other_forms", "iterations", "ms_per_step")
    return columns(names, rows)


def _largest(difference: np.ndarray) -> float:
    return float(np.max(np.linalg.norm(difference, axis=1)))


def reference_table(exact: Motion) -> Table:
    """What the reference must keep: drifts (relative where they are of energy), least force, least slip."""
    balance = np.abs(exact.energy + exact.friction_loss - exact.energy[0]) / exact.energy[0]
    return {
        "gap": np.array([np.max(np.abs(exact.gap))]),
        "gap_rate": np.array([np.max(np.abs(exact.gap_rate))]),
        "balance": np.array([np.max(balance)]),
        "least_normal_force": np.array([np.min(exact.normal_force)]),
        "least_slip": np.array([np.min(np.hypot(exact.slip[:, 0], exact.slip[:, 1]))]),
        "friction_loss": exact.friction_loss[-1:],
    }


def reference_checks(table: Table) -> list[Check]:
    return [
        at_most("reference: largest gap", table["gap"][0], 1e-11, "m"),
        at_most("reference: fastest change of the gap", table["gap_rate"][0], 1e-10, "m/s"),
        at_most("reference: energy + friction loss, relative drift", table["balance"][0], 1e-10),
        at_least("reference: least normal force", table["least_normal_force"][0], 0.01, "N"),
    ]


def motion_table(run: Trajectory, exact: Motion) -> Table:
    """Run and reference at the reference's times: axis, precession, contact, force, losses.

    The run's contact is that of the step that ends at the time, its force the step's mean.
    """
    at, body = rows_at(run.time, exact.time), run["body"]
    h = run.options.step
    point, force = np.full((len(run.time), 3), np.nan), np.full(len(run.time), np.nan)
    ends = rows_at(run.time, run.contacts["time"])
    point[ends], force[ends] = run.contacts["point"], run.contacts["p_n"] / h
    table = {"time": exact.time}
    sides = (
        ("", body.position[at], body.orientation[at], body.angular_velocity[at], point[at], force[at]),
        (
            "_exact",
            exact.position,
            exact.orientation,
            exact.angular_velocity,
            exact.point,
            exact.normal_force,
        ),
    )
    for suffix, x, q, w, p, N in sides:
        axis = axes_of(q)
        table |= {f"{c}{suffix}": x[:, i] for i, c in enumerate("xyz")}
        table |= {f"q_{c}{suffix}": q[:, i] for i, c in enumerate("wxyz")}
        table |= {f"point_{c}{suffix}": p[:, i] for i, c in enumerate("xy")}
        table[f"tilt{suffix}"], table[f"precession{suffix}"] = tilt_of(axis), precession_of(axis, w)
        table[f"normal_force{suffix}"] = N
    table["energy_exact"] = exact.energy
    table["friction_loss_exact"] = exact.friction_loss
    return table


def chosen(table: Table, stepper: str) -> Table:
    """The rows of one stepper."""
    rows = table["stepper"] == stepper
    return {name: column[rows] for name, column in table.items()}


def fourth_order_checks(table: Table) -> list[Check]:
    """The order of implicit-rattle-4, where the table has it: measured with its own steps alone."""
    rows = chosen(table, "implicit-rattle-4")
    if not len(rows["step"]):
        return []
    words = "implicit-rattle-4: "
    checks = [at_most(f"{words}steps of another form", np.sum(rows["other_forms"]), 0)]
    for name in ("position", "energy"):
        checks.append(at_least(f"{words}{name}, order", order(rows["step"], rows[name]), 3.8))
    return checks


def texts(tables: dict[str, Table], names: tuple[str, ...]) -> str:
    """Tables as aligned text."""
    blocks = []
    for name in names:
        cells = [
            [column, *(f"{v:.4g}" if isinstance(v, float) else str(v) for v in values.tolist())]
            for column, values in tables[name].items()
        ]
        widths = [max(len(cell) for cell in column) for column in cells]
        rows = ["    " + "  ".join(c.rjust(w) for c, w in zip(row, widths)) for row in zip(*cells)]
        blocks.append("\n".join([f"  {name}", *rows]))
    return "\n".join(blocks)


def figure_ledger(ledger: Table, motion: Table) -> Any:
    """Where the energy is, where it went, and what is left over."""
    figure, axes = panels(1, 3, (PAGE, 2.5))
    where, gone, left = axes[0]
    t = ledger["time"]
    lost, impact, rest = (1e3 * np.cumsum(ledger[name]) for name in ("friction", "impact", "remainder"))
    kinetic, potential = 1e3 * ledger["kinetic"], 1e3 * ledger["potential"]
    bands = (
        (potential, GREEN, "potential"),
        (kinetic, BLUE, "kinetic"),
        (lost, ORANGE, "friction"),
        (impact, RED, "impact"),
    )
    base = np.zeros(len(t))
    for band, colour, words in bands:
        where.fill_between(t, base, base + band, color=colour, alpha=0.75, linewidth=0, label=words)
        base = base + band
    where.axhline(kinetic[0] + potential[0], color="black", linewidth=0.8, linestyle="--")
    where.set(xlabel="time, s", ylabel="energy, mJ", xlim=(0, t[-1]), ylim=(0, 1.35 * base[0]))
    where.legend(loc="upper center", ncols=2)
    gone.plot(t, lost, color=ORANGE, label="ledger")
    some = slice(None, None, max(1, len(motion["time"]) // 14))
    exact = 1e3 * motion["friction_loss_exact"]
    gone.plot(motion["time"][some], exact[some], ".", color="black", label="reference")
    gone.set(xlabel="time, s", ylabel="friction loss, mJ", xlim=(0, t[-1]), ylim=(0, None))
    gone.legend(loc="lower right")
    left.plot(t, 1e3 * rest, color=PURPLE)
    left.axhline(0, color=GREY, linewidth=0.6)
    left.set(xlabel="time, s", ylabel=r"remainder, $\mu$J", xlim=(0, t[-1]))
    label(where, "a", f"energy, $h$ = {1e3 * t[1]:g} ms")
    label(gone, "b", "lost to friction")
    label(left, "c", "remainder so far")
    return figure


def figure_order(table: Table, words: dict[str, str], *, without_order: tuple[str, ...] = ()) -> Any:
    """Largest error over the step, a panel a quantity (column -> words), a line a stepper.

    Steppers `without_order` are shown by their errors alone.
    """
    kept = ~np.isin(table["stepper"], without_order)
    figure = order_figure({name: column[kept] for name, column in table.items()}, words, TITLES)
    for axis, column in zip(figure.axes, words):
        for stepper in without_order:
            rows = chosen(table, stepper)
            style = MARKERS[stepper] + ":"
            axis.loglog(rows["step"], rows[column], style, color=COLOURS[stepper], label=stepper)
        low, high = 0.15 * np.min(table[column]), np.max(table[column])
        axis.set_ylim(low, high * (high / low) ** 0.42)  # room for the legend, and for the slopes below
        axis.legend(loc="upper left")
        step_ticks(axis, table["step"])
    return figure


def step_ticks(axis: Axes, h: np.ndarray) -> None:
    """A tick at every step, in milliseconds."""
    steps = np.unique(h)
    axis.set_xticks(steps, [f"{1e3 * value:g}" for value in steps])
    axis.set_xticks([], minor=True)
    axis.set(xlabel="step $h$, ms")
