"""The figures of `sliding_spinning_ball`: motion, energy, order, and the error by the place of the change."""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom.experiments.comparison import Table, of_case
from implicit_geom.experiments.figures import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PAGE,
    RED,
    label,
    order_line,
    panels,
    paper,
)
from implicit_geom.experiments.motion_figures import COLOURS, MARKERS, SLOPES, step_axis, steppers_of
from implicit_geom.experiments.regression import order
from implicit_geom.experiments.sliding_ball_reference import CASES, STRAIGHT, table_key


@paper
def plot(tables: dict[str, Table]) -> dict[str, Any]:
    cases = list(dict.fromkeys(tables["errors"]["case"]))
    return {
        "motion": _figure_motion(tables, cases),
        "energy": _figure_energy(tables, cases),
        "order": _figure_order(tables["errors"], cases),
        "offsets": _figure_offsets(tables["offsets"]),
    }


def _figure_motion(tables: dict[str, Table], cases: list[str]) -> Any:
    figure, axes = panels(1, len(cases), (PAGE, 2.7))
    for axis, letter, case in zip(axes[0], "abc", cases):
        motion, exact = tables[f"{table_key(case)}_motion"], CASES[case].exact["states"]
        t = np.array(exact["t"])
        shown = t <= motion["time"][-1] + 1e-9
        lines = [("v_x", "v", 0, "$v_x$, m/s", BLUE), ("w_y", "omega", 1, r"$\omega_y$, rad/s", ORANGE)]
        if "spin" in case.split():
            lines.append(("w_z", "omega", 2, r"$\omega_z$, rad/s", GREEN))
        for column, key, i, words, colour in lines:
            axis.plot(motion["time"], motion[column], color=colour, label=words)
            axis.plot(t[shown], np.array(exact[key])[shown, i], ".", color=colour)
        axis.axvline(CASES[case].stop, color=GREY, linewidth=0.6, linestyle="--")
        axis.plot([], [], ".", color=GREY, label="reference")
        axis.set(xlabel="time, s", xlim=(0, motion["time"][-1]))
        axis.legend(loc="best" if case in STRAIGHT else "upper center")
        label(axis, letter, case)
    return figure


def _figure_energy(tables: dict[str, Table], cases: list[str]) -> Any:
    figure, axes = panels(1, len(cases), (PAGE, 2.7))
    for axis, letter, case in zip(axes[0], "abc", cases):
        ledger = tables[f"{table_key(case)}_ledger"]
        t, kinetic = ledger["time"], ledger["kinetic"]
        lost, rest = np.cumsum(ledger["friction"]), np.cumsum(ledger["remainder"])
        axis.plot(t, kinetic, color=BLUE, label="kinetic")
        axis.plot(t, lost, color=RED, label="lost by friction")
        axis.plot(t, rest, color=ORANGE, label="remainder")
        axis.plot(t, kinetic + lost - rest, "--", color=GREY, label="their balance")
        axis.axvline(CASES[case].stop, color=GREY, linewidth=0.6, linestyle="--")
        axis.set(xlabel="time, s", xlim=(0, t[-1]))
        label(axis, letter, case)
    axes[0, 0].set(ylabel="energy, J")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def _figure_order(errors: Table, cases: list[str]) -> Any:
    figure, axes = panels(1, len(cases), (PAGE, 2.8))
    for axis, letter, case in zip(axes[0], "abc", cases):
        rows = of_case(errors, case)
        for stepper in steppers_of(rows):
            chosen = rows["stepper"] == stepper
            h, error = rows["step"][chosen], rows["position"][chosen]
            words = f"{stepper}: {order(h, error):.2f}"
            hollow = {"fillstyle": "none", "markersize": 6.5} if SLOPES[stepper] == 4 else {}
            axis.loglog(h, error, MARKERS[stepper] + "-", color=COLOURS[stepper], label=words, **hollow)
            if SLOPES[stepper] < 4:  # the change of mode is taken with second order
                order_line(axis, h, error, SLOPES[stepper])
        low, high = axis.get_ylim()
        axis.set(ylim=(low, high * (high / low) ** 0.35))
        step_axis(axis)
        axis.legend(loc="upper left", title="order", alignment="left")
        label(axis, letter, case)
    axes[0, 0].set(ylabel="largest position error, m")
    return figure


def _figure_offsets(offsets: Table) -> Any:
    """Errors over h^2 against the place of the change within its step: one curve for all steps."""
    figure, axes = panels(1, 1, (0.6 * PAGE, 2.8))
    axis, rows = axes[0, 0], of_case(offsets, "slide")
    rattle = rows["stepper"] == "implicit-rattle"
    theta = np.linspace(0, 1, 201)
    axis.plot(
        theta, CASES["slide"].grip * np.minimum(theta, 1 - theta) ** 2 / 2, color=GREY, label="predicted"
    )
    for h, marker, colour in zip(np.unique(rows["step"])[::-1], "os^vD", (BLUE, ORANGE, GREEN, RED, "black")):
        at = rattle & (rows["step"] == h)
        scaled = rows["position"][at] / h**2
        axis.plot(rows["theta"][at], scaled, marker, color=colour, label=f"$h$ = {h:g} s", fillstyle="none")
    axis.set(
        xlabel=r"place of the change within its step, $\theta$", ylabel="position error / $h^2$, m/s$^2$"
    )
    axis.set(xlim=(0, 1), ylim=(0, None))
    axis.legend(loc="upper right", bbox_to_anchor=(1.35, 1.0))
    return figure
