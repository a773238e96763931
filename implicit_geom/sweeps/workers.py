"""The runs of a sweep in processes of this machine, one BLAS thread each."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
from collections.abc import Generator, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

from implicit_geom.errors import SceneError, SimulationError
from implicit_geom.scenefile import read_scene
from implicit_geom.simulate import simulate
from implicit_geom.sweeps.grid import Point
from implicit_geom.sweeps.summaries import Summary, evaluate

BLAS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
Result = tuple[int, str, str, dict[str, float]]  # number of the point, status, reason, quantities

_stop: Any = None  # in a worker: the event that asks it to leave its run


class _Left(Exception):
    """A run that was left because the sweep was interrupted."""


def results(points: list[Point], summary: Summary, workers: int) -> Generator[Result, None, None]:
    """The runs as they end; with one worker in this process, one after the other."""
    if workers == 1:
        for point in points:
            yield execute(point, summary)
        return
    context = multiprocessing.get_context("spawn")  # a fork would copy the threads of compiled code
    stop = context.Event()
    with _one_thread(), ProcessPoolExecutor(workers, context, _begin, (stop,)) as pool:
        futures = [pool.submit(execute, point, summary) for point in points]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BrokenProcessPool:
            raise SimulationError(
                "a process of the sweep ended unexpectedly (out of memory, or a script without "
                'if __name__ == "__main__":); the rows so far are kept, resume to run the others'
            ) from None
        finally:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)


def check_processes(summary: Summary) -> None:
    """Refuse what cannot be made in processes, before anything is written."""
    # (a spawned process reads the script that started it once more, and would sweep as well)
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SimulationError('a sweep in a script must be called under if __name__ == "__main__":')
    for label, what in summary.items():
        _check_travels(label, what)


def execute(point: Point, summary: Summary) -> Result:
    """One run and its quantities; whatever goes wrong with it is its status and reason."""
    try:
        scene, _ = read_scene(point.scene)
        run = simulate(scene, **point.options, progress=False if _stop is None else _watch)
        status = "failed" if run.failed else "done"
        return point.number, status, run.failure, evaluate(run, summary)
    except _Left:
        raise
    except Exception as error:
        kind = "" if isinstance(error, ValueError | SimulationError) else f"{type(error).__name__}: "
        return point.number, "failed", " ".join(f"{kind}{error}".split()), {}


def _begin(stop: Any) -> None:
    """A worker leaves interrupts to the process that started it, which tells it to stop."""
    global _stop
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _watch(_: float) -> None:
    if _stop.is_set():
        raise _Left


def _check_travels(label: str, what: Any) -> None:
    try:
        pickle.dumps(what)
    except Exception:
        raise SceneError(
            f"summary[{label!r}] cannot be sent to another process: define it at the top of a module, "
            "or take workers=1"
        ) from None


@contextmanager
def _one_thread() -> Iterator[None]:
    """Processes started within take one BLAS thread: the matrices are small, the cores are taken."""
    before = {name: os.environ.get(name) for name in BLAS}
    os.environ.update(dict.fromkeys(BLAS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
