"""`implicit-geom sweep`: a scene file simulated for every combination of some values."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from implicit_geom.process.signals import status


def add(commands: Any, debug: argparse.ArgumentParser) -> None:
    p = commands.add_parser("sweep", parents=[debug], help="a scene under every combination of some values")
    p.add_argument("sweep", metavar="SWEEP.toml", help="the scene, the values and what to keep of each run")
    p.add_argument("-o", "--output", metavar="DIR", help="folder of sweep.csv (default: the file's name)")
    p.add_argument("--engine", default="local", metavar="NAME", help="where the runs are made (local)")
    p.add_argument("--workers", type=int, metavar="N", help="processes (default: one a processor)")
    p.add_argument("--resume", action="store_true", help="keep the rows that are there, make the others")
    p.set_defaults(main=main)


def main(chosen: argparse.Namespace) -> int:
    from implicit_geom.studies.sweeps import Sweep, sweep
    from implicit_geom.studies.sweeps.sweep import CSV
    from implicit_geom.studies.sweeps.sweep_file import read_sweep

    source = Path(chosen.sweep)
    output = Path(chosen.output or source.stem)
    scene, options, values, summary = read_sweep(source)
    try:
        found = sweep(
            scene,
            values,
            summary,
            output=output,
            engine=chosen.engine,
            workers=chosen.workers,
            resume=chosen.resume,
            **options,
        )
    except KeyboardInterrupt as interrupt:
        if not (output / CSV).exists():
            raise
        rows = len(Sweep.load(output))
        print(
            f"implicit-geom: interrupted; {rows} rows are in {output / CSV}, --resume makes the others",
            file=sys.stderr,
        )
        return status(interrupt)
    failed = np.flatnonzero(found.failed)
    print(f"runs        {len(found)}, {len(failed)} failed")
    for row in failed[:3]:
        print(f"failed      run {found.table['run'][row]}: {found.table['reason'][row]}")
    for name in list(found.table)[list(found.table).index("reason") + 1 :]:
        column = found.table[name][~found.failed]
        if len(column):
            print(f"{name:26} {column.min():.6g} to {column.max():.6g}, median {np.median(column):.6g}")
    print(f"saved       {found.path}")
    return 1 if len(failed) else 0
