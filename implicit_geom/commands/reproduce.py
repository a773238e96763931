"""`implicit-geom reproduce`: the papers' figures and tables, each with its own check."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from implicit_geom.interface.errors import SceneError
from implicit_geom.scene.options import hint


def add(commands: Any, debug: argparse.ArgumentParser) -> None:
    p = commands.add_parser("reproduce", parents=[debug], help="the papers' figures and tables")
    add_selection(p, "reproduced")
    p.set_defaults(main=main)


def main(chosen: argparse.Namespace) -> int:
    from implicit_geom import experiments

    return execute(chosen, experiments.REGISTRY, "experiment")


def add_selection(p: argparse.ArgumentParser, folder: str) -> None:
    """The options that `reproduce` and `bench` share."""
    p.add_argument("names", nargs="*", metavar="NAME", help="which ones; `all` for every one")
    p.add_argument("--list", action="store_true", help="list them")
    p.add_argument("--quick", action="store_true", help="the short form of each")
    p.add_argument(
        "-o", "--output", default=folder, metavar="DIR", help=f"where to write (default: {folder})"
    )


def execute(chosen: argparse.Namespace, registry: dict[str, Any], what: str) -> int:
    """List or run the chosen entries of a registry; 1 if any check failed."""
    from implicit_geom.experiments.runner import reproduce

    if chosen.list or not chosen.names:
        for name, module in registry.items():
            print(f"{name:24} {module.TITLE}")
        if not chosen.list:
            print(f"give names, or `all`, to run them; there are {len(registry)}")
        return 0
    names = list(registry) if "all" in chosen.names else list(dict.fromkeys(chosen.names))
    for name in names:
        if name not in registry:
            raise SceneError(f"no {what} named {name!r}{hint(name, registry)}")
    output = Path(chosen.output)
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SceneError(f"{output}: cannot be made: {error.strerror}; choose another -o") from None
    passed = [reproduce(name, registry[name], output, quick=chosen.quick) for name in names]
    if len(names) > 1:
        print(f"{sum(passed)} of {len(passed)} passed")
    return 0 if all(passed) else 1
