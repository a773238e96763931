"""What `work_precision` prints and draws, from its table alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom.experiments.comparison import Table
from implicit_geom.experiments.figures import PAGE, PURPLE, RED, label, panels
from implicit_geom.experiments.motion_figures import COLOURS, MARKERS, SLOPES

OURS = "implicit-geom"
TARGETS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)  # m: errors at which times are compared
TITLES = {"ellipsoid-rolling": "rolling ellipsoid", "rattleback": "rattleback"}
PEERS = {"mujoco": ("MuJoCo", RED, "D"), "drake": ("Drake", PURPLE, "v")}


def names_of(table: Table) -> np.ndarray:
    """How each row is called: a stepper's name, or a peer and its setting."""
    pairs = zip(table["simulator"].tolist(), table["setting"].tolist())
    return np.array([s if simulator == OURS else f"{simulator} {s}" for simulator, s in pairs])


def run_lines(table: Table) -> list[str]:
    """Every run of each case, then the time each simulator needs for a given error."""
    names = names_of(table)
    lines = []
    for case in dict.fromkeys(table["case"].tolist()):
        here = table["case"] == case
        lines.append(f"  {case}")
        lines.append(
            f"    {'':20}{'h, s':>10}{'position, m':>14}{'energy':>10}{'time, s':>11}{'us/step':>10}"
        )
        for i in np.flatnonzero(here):
            h, error, spent = (table[c][i] for c in ("h", "position_error", "energy_error"))
            time, each = table["wall_time"][i], 1e6 * table["wall_time"][i] / table["steps"][i]
            lines.append(f"    {names[i]:20}{h:>10.3g}{error:>14.2e}{spent:>10.1e}{time:>11.4f}{each:>10.1f}")
        lines.append(f"    {'s for an error of':20}" + "".join(f"{t:>10.0e}" for t in TARGETS) + "  m")
        for name in dict.fromkeys(names[here].tolist()):
            times = [_time_for(table, here & (names == name), t) for t in TARGETS]
            cells = "".join(f"{t:>10.3g}" if np.isfinite(t) else f"{'-':>10}" for t in times)
            lines.append(f"    {name:20}{cells}")
    return lines


def _time_for(table: Table, chosen: np.ndarray, target: float) -> float:
    """Wall time at an error, by interpolation of the logarithms; NaN outside of what was measured."""
    error, time = np.log(table["position_error"][chosen]), np.log(table["wall_time"][chosen])
    if np.any(np.diff(error) >= 0):
        return np.nan  # no error that falls with every shorter step
    return float(np.exp(np.interp(np.log(target), error[::-1], time[::-1], left=np.nan, right=np.nan)))


def error_figure(table: Table, column: str, words: str) -> Any:
    """Position error over a column, log-log, one panel a case."""
    cases = list(dict.fromkeys(table["case"].tolist()))
    figure, axes = panels(1, len(cases), (PAGE, 3.4))
    names = names_of(table)
    handles: dict[str, Any] = {}
    for axis, letter, case in zip(axes[0], "abcd", cases):
        for name in dict.fromkeys(names.tolist()):
            chosen = (table["case"] == case) & (names == name)
            if np.any(chosen):
                line = axis.loglog(table[column][chosen], table["position_error"][chosen], **_look(name))
                handles.setdefault(line[0].get_label(), line[0])
        axis.set(xlabel=words)
        label(axis, letter, f"{TITLES[case]}: position error at the end, m")
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4)
    return figure


def _look(name: str) -> dict[str, Any]:
    """Colour, marker and label of a line; a peer as it is shipped is dashed and hollow."""
    if name in SLOPES:
        return {"color": COLOURS[name], "marker": MARKERS[name], "label": name}
    simulator, setting = name.split()
    words, colour, marker = PEERS[simulator]
    look = {"color": colour, "marker": marker, "label": f"{words}, {setting}"}
    if setting == "default":
        look |= {"linestyle": "--", "markerfacecolor": "white"}
    return look
