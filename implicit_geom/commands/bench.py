"""`implicit-geom bench`: how fast, and against what."""

from __future__ import annotations

import argparse
from typing import Any

from implicit_geom.commands.reproduce import add_selection, execute


def add(commands: Any, debug: argparse.ArgumentParser) -> None:
    p = commands.add_parser("bench", parents=[debug], help="timings")
    add_selection(p, "benchmarks")
    p.set_defaults(main=main)


def main(chosen: argparse.Namespace) -> int:
    from implicit_geom.experiments import benchmarks

    return execute(chosen, benchmarks.REGISTRY, "benchmark")
