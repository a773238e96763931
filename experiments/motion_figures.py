"""Panels that several experiments draw: the ledger of energy, errors over time, errors over the step."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from implicit_geom.experiments.comparison import EXACT, Table
from implicit_geom.experiments.figures import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PAGE,
    PURPLE,
    RED,
    label,
    order_line,
    panels,
)
from implicit_geom.experiments.regression import order

COLOURS = {"implicit-euler": ORANGE, "implicit-rattle": BLUE, "implicit-rattle-4": GREEN}
MARKERS = {"implicit-euler": "^", "implicit-rattle": "o", "implicit-rattle-4": "s"}
SLOPES = {"implicit-euler": 1, "implicit-rattle": 2, "implicit-rattle-4": 4}
BOOKS = {"work": PURPLE, "friction": RED, "impact": ORANGE, "remainder": GREY}
ROUNDING = 1e-17  # the least error drawn on a logarithmic axis


def steppers_of(table: Table) -> list[str]:
    """The steppers of a table, in the order of their slopes."""
    return [name for name in SLOPES if name in table["stepper"]]


def ledger_figure(ledger: Table, errors: Table, title: str) -> Figure:
    """(a) kinetic, potential and booked energy over time; (b) the relative error of the energy by stepper."""
    figure, axes = panels(1, 2, (PAGE, 2.6))
    books, drift = axes[0]
    draw_ledger(books, ledger)
    label(books, "a", title)
    draw_over_time(drift, errors, "energy")
    drift.set(ylabel="$|E / E_0 - 1|$")
    label(drift, "b", "error of the energy")
    return figure


def draw_ledger(axis: Axes, ledger: Table, *, changes: bool = False) -> None:
    """Kinetic and potential energy and their sum; what left and what came, summed over time.

    With `changes`, all in mJ since the start, for a motion that exchanges little.
    """
    t, scale = ledger["time"], 1e3 if changes else 1.0
    total = ledger["kinetic"] + ledger["potential"]
    for name, energy, colour in (
        ("total", total, "black"),
        ("kinetic", ledger["kinetic"], BLUE),
        ("potential", ledger["potential"], GREEN),
    ):
        axis.plot(t, scale * (energy - energy[0] if changes else energy), color=colour, label=name)
    for name, colour in BOOKS.items():
        booked = np.cumsum(ledger[name])
        if np.max(np.abs(booked)) > 1e-9 * np.max(np.abs(total)):
            axis.plot(t, scale * booked, "--", color=colour, label=name)
    words = "change of energy, mJ" if changes else "energy, J"
    axis.set(xlabel="time, s", ylabel=words, xlim=(t[0], t[-1]))
    low, high = axis.get_ylim()
    axis.set(ylim=(low, high + 0.3 * (high - low)))
    axis.legend(loc="upper center", ncols=4, columnspacing=1.0, handlelength=1.4)


def draw_over_time(axis: Axes, errors: Table, column: str) -> None:
    """A column of errors over time, one line a stepper, logarithmic."""
    for name in steppers_of(errors):
        chosen = errors["stepper"] == name
        value = np.maximum(errors[column][chosen], ROUNDING)
        axis.semilogy(errors["time"][chosen][1:], value[1:], color=COLOURS[name], label=name, linewidth=0.9)
    axis.set(xlabel="time, s", xlim=(errors["time"].min(), errors["time"].max()))
    low, high = axis.get_ylim()
    axis.set(ylim=(low, high * (high / low) ** 0.3))
    axis.legend(loc="upper center", ncols=len(steppers_of(errors)), columnspacing=1.0, handlelength=1.2)


def order_figure(errors: Table, quantities: dict[str, str], titles: dict[str, str]) -> Figure:
    """One panel a column: error over the step, one line a stepper, each with its slope."""
    figure, axes = panels(1, len(quantities), (PAGE, 2.8), sharex=True)
    for axis, letter, (column, words) in zip(axes[0], "abcd", quantities.items()):
        draw_order(axis, errors, column)
        axis.set(ylabel=words)
        label(axis, letter, titles[column])
    return figure


def draw_order(axis: Axes, errors: Table, column: str) -> None:
    """Error over the step, log-log, with a line of the slope each stepper should have."""
    for name in steppers_of(errors):
        chosen = (errors["stepper"] == name) & np.isfinite(errors[column])
        h, error = errors["step"][chosen], np.maximum(errors[column][chosen], ROUNDING)
        exact = np.max(error) < EXACT
        measured = "exact" if exact else f"order {order(h, error):.2f}"
        axis.loglog(h, error, MARKERS[name] + "-", color=COLOURS[name], label=f"{name}: {measured}")
        if not exact:
            order_line(axis, h, error, SLOPES[name])
    step_axis(axis)
    low, high = axis.get_ylim()
    axis.set(ylim=(low, high * (high / low) ** 0.42))
    axis.legend(loc="upper left")


def step_axis(axis: Axes) -> None:
    """A logarithmic axis of steps with plain numbers at 1, 2 and 5."""
    axis.set(xlabel="step $h$, s")
    axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())


def draw_reference(
    axis: Axes, motion: Table, states: dict[str, Any], components: dict[str, tuple[str, int, str]]
) -> None:
    """Columns of a motion as lines over reference dots; column -> (reference's key, component, label)."""
    t = np.array(states["t"])
    shown = t <= motion["time"][-1] + 1e-9
    every = max(1, int(np.sum(shown)) // 50)
    for (column, (key, i, words)), colour in zip(components.items(), (BLUE, ORANGE, GREEN)):
        axis.plot(motion["time"], motion[column], color=colour, label=words)
        exact = np.array(states[key])[shown, i]
        axis.plot(t[shown][::every], exact[::every], ".", color=colour, markersize=3)
    axis.plot([], [], ".", color=GREY, label="reference")
    axis.set(xlabel="time, s", xlim=(0, motion["time"][-1]))
