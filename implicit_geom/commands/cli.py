"""The command line: 0 for success, 1 when the work failed, 2 for bad input; errors in one line.

Ended by a signal it is 128 and the signal's number, after what was done so far is saved: 130 for Ctrl-C, 143
for SIGTERM. Where nobody reads the output any more (`| head`) it is 141, without a word, as with other tools.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, TextIO

from implicit_geom.commands import advise, bench, certify, compare, contact, demo, reproduce, run, sweep
from implicit_geom.interface.errors import SceneError, SceneNotice
from implicit_geom.interface.words import one_line
from implicit_geom.process.signals import listening, status
from implicit_geom.shapes.errors import ShapeError
from implicit_geom.version import __version__

SUCCESS, FAILED, BAD_INPUT = 0, 1, 2
NOBODY_READS = 128 + 13  # SIGPIPE


class _Parser(argparse.ArgumentParser):
    """argparse with one-line errors."""

    def error(self, message: str) -> NoReturn:
        print(one_line(f"{self.prog}: {message}; see {self.prog} --help"), file=sys.stderr)
        raise SystemExit(BAD_INPUT)


def parser() -> argparse.ArgumentParser:
    """All sub-commands and their options."""
    top = _Parser(prog="implicit-geom", description="Convex rigid bodies given by implicit surfaces.")
    top.add_argument("--version", action="version", version=f"implicit-geom {__version__}")
    debug = argparse.ArgumentParser(add_help=False)
    debug.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    for command in (demo, run, certify, compare, advise, sweep, reproduce, bench, contact):
        command.add(commands, debug)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status."""
    try:
        with listening():
            try:
                return _command(arguments)
            finally:
                if sys.stdout is not None:
                    sys.stdout.flush()
    except KeyboardInterrupt as error:
        return status(error)
    except BrokenPipeError:
        _drop(sys.stdout, sys.stderr)
        return NOBODY_READS
    except OSError as error:  # the output's own: a disk that is full, a terminal that is gone
        _drop(sys.stdout)
        with suppress(OSError):
            print(f"implicit-geom: the output cannot be written: {error.strerror}", file=sys.stderr)
        return FAILED


def _command(arguments: Sequence[str] | None) -> int:
    chosen = parser().parse_args(arguments)
    try:
        with _notices_as_lines():
            return int(chosen.main(chosen))
    except BrokenPipeError:
        raise
    except (SceneError, ShapeError) as error:
        return _complain(chosen, error, str(error), BAD_INPUT)
    except KeyboardInterrupt as error:
        return _complain(chosen, error, "interrupted", status(error))
    except Exception as error:
        message = (
            str(error) if isinstance(error, OSError | RuntimeError) else f"{type(error).__name__}: {error}"
        )
        return _complain(chosen, error, message, FAILED)


def _drop(*streams: TextIO | None) -> None:
    """What is still in the buffers goes nowhere: Python would complain about it when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        if stream is not None:
            with suppress(OSError, ValueError):
                os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


@contextmanager
def _notices_as_lines() -> Iterator[None]:
    """A `SceneNotice` is one plain line on standard error, once; other warnings stay what they are."""
    told: set[str] = set()
    with warnings.catch_warnings():
        shown = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any) -> None:
            if not issubclass(category, SceneNotice):
                shown(message, category, *where)
            elif str(message) not in told:
                told.add(str(message))
                print(f"implicit-geom: notice: {message}", file=sys.stderr)

        warnings.showwarning = show  # type: ignore[assignment]
        warnings.simplefilter("always", SceneNotice)
        yield


def _complain(chosen: argparse.Namespace, error: BaseException, message: str, status: int) -> int:
    if chosen.debug:
        traceback.print_exception(error)
    else:
        print(one_line(f"implicit-geom: {message}"), file=sys.stderr)
    return status


if __name__ == "__main__":
    raise SystemExit(main())
