"""What `precision` prints and draws, from its tables alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom.experiments.comparison import Table
from implicit_geom.experiments.figures import BROWN, GREY, PAGE, PURPLE, RED, panels
from implicit_geom.experiments.motion_figures import COLOURS, MARKERS

LOOKS = {"mujoco": ("MuJoCo", RED, "D"), "drake": ("Drake", PURPLE, "v"), "siconos": ("Siconos", BROWN, "P")}


def lines(tables: dict[str, Table]) -> list[str]:
    """Times by target, the quickest first within a simulator."""
    needed, survey = tables["needed"], tables["survey"]
    out = []
    for target in dict.fromkeys(needed["target"].tolist()):
        out.append(f"  {f'error {target:g} m':58}{'time, ms':>10}{'h, ms':>10}  found")
        rows = np.flatnonzero(needed["target"] == target)
        for i in sorted(rows, key=lambda i: (_order(needed, i), needed["seconds"][i])):
            name = f"{needed['simulator'][i]} {needed['setting'][i]}"
            cells = [f"{1e3 * needed[c][i]:10.3g}" for c in ("seconds", "h")]
            cells = cells if np.isfinite(needed["seconds"][i]) else [f"{'-':>10}"] * 2
            out.append(f"    {name:56}{''.join(cells)}  {needed['how'][i]}")
    counted = ", ".join(
        f"{len(set(survey['setting'][survey['simulator'] == s].tolist()))} of {s}"
        for s in dict.fromkeys(survey["simulator"].tolist())
    )
    out.append(
        f"  settings surveyed: {counted}, {len(survey['h'])} runs; the quickest ones were timed in turns"
    )
    return out


def _order(needed: Table, i: int) -> int:
    return ["implicit-geom", *LOOKS].index(str(needed["simulator"][i]))


def drawn(tables: dict[str, Table]) -> Any:
    """Error over time: all settings of the survey as lines, the runs timed in turns as marks, the targets."""
    survey, timed = tables["survey"], tables["timed"]
    figure, axes = panels(1, 1, (PAGE, 3.8))
    axis = axes[0, 0]
    for target in dict.fromkeys(tables["needed"]["target"].tolist()):
        axis.axhline(target, color=GREY, linewidth=0.8, linestyle="--")
    handles: dict[str, Any] = {}
    for simulator, setting in dict.fromkeys(zip(survey["simulator"].tolist(), survey["setting"].tolist())):
        words, colour, marker = LOOKS.get(simulator) or (setting, COLOURS[setting], MARKERS[setting])
        thin = {"linewidth": 0.4, "alpha": 0.5} if simulator in LOOKS else {}
        lined, marked = (_points(t, simulator, setting) for t in (survey, timed))
        axis.loglog(*lined, color=colour, **thin)
        axis.loglog(*marked, marker, color=colour)
        handles[words] = axis.plot([], [], marker + "-", color=colour)[0]
    axis.set(xlabel="wall time of the stepping loop, ms", ylabel="position error at the end, m")
    axis.set(ylim=(0.3 * min(np.min(timed["position_error"]), 1e-5), 0.3))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=6)
    return figure


def _points(table: Table, simulator: str, setting: str) -> tuple[np.ndarray, np.ndarray]:
    """Milliseconds and errors of a setting's runs."""
    rows = (table["simulator"] == simulator) & (table["setting"] == setting)
    return 1e3 * table["seconds"][rows], table["position_error"][rows]
