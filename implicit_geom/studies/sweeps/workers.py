"""The runs of a sweep in processes of this machine, one BLAS thread each.

No worker outlives the sweep. One that ends early closes its end of a pipe, and so does the system when the
process of the sweep ends, whatever ended it: a thread of each worker waits for that and ends the worker at
once, also in the middle of machine code. Linux is asked to see to it as well.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import warnings
from collections.abc import Generator, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from threading import Thread
from typing import Any

from implicit_geom.interface.errors import SceneError, SimulationError
from implicit_geom.machine import disk
from implicit_geom.machine.availability import available
from implicit_geom.run.simulate import simulate
from implicit_geom.scene.scene_file import read_scene
from implicit_geom.studies.sweeps.grid import Point
from implicit_geom.studies.sweeps.summaries import Summary, evaluate

BLAS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
TO_ALL = [getattr(signal, name) for name in ("SIGINT", "SIGHUP") if hasattr(signal, name)]
DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux
Result = tuple[int, str, str, dict[str, float]]  # number of the point, status, reason, quantities


def results(points: list[Point], summary: Summary, workers: int) -> Generator[Result, None, None]:
    """The runs as they end; with one worker in this process, one after the other."""
    if workers == 1:
        for point in points:
            yield execute(point, summary)
        return
    with processes(workers) as pool:
        try:
            with _left_to_this_process():
                futures = [pool.submit(execute, point, summary) for point in points]
            for future in as_completed(futures):
                yield future.result()
        except BrokenProcessPool:
            raise SimulationError(
                "a process of the sweep ended unexpectedly (out of memory, or a script without "
                'if __name__ == "__main__":); the rows so far are kept, resume to run the others'
            ) from None


@contextmanager
def processes(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Workers that end with the block, or with this process; at once where it is left early."""
    if available():
        disk.private_folder(make=True)  # what there is to be said about it is said here, not by every worker
    context = multiprocessing.get_context("spawn")  # a fork would copy the threads of compiled code
    theirs, ours = context.Pipe(duplex=False)
    with _left_to_this_process():  # (its semaphores are looked after by one more process)
        pool = ProcessPoolExecutor(workers, context, _begin, (theirs,))
    with _one_thread(), theirs, ours, pool:
        try:
            yield pool
        except BaseException:
            ours.close()
            raise
        finally:
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
        run = simulate(scene, **point.options, progress=False)
        status = "failed" if run.failed else "done"
        return point.number, status, run.failure, evaluate(run, summary)
    except Exception as error:
        kind = "" if isinstance(error, ValueError | SimulationError) else f"{type(error).__name__}: "
        return point.number, "failed", " ".join(f"{kind}{error}".split()), {}


def _begin(pipe: Connection) -> None:
    """A worker leaves the signals of a terminal to the process that started it, and ends with it."""
    for number in TO_ALL:
        signal.signal(number, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DEATH_SIGNAL, signal.SIGKILL)
    Thread(target=_end_with, args=(pipe, parent.sentinel), daemon=True).start()
    warnings.filterwarnings("ignore", message=disk.NOT_USED)


def _end_with(pipe: Connection, parent: int) -> None:
    """End this process when the sweep has ended, or its process."""
    wait([pipe, parent])
    os._exit(1)


@contextmanager
def _left_to_this_process() -> Iterator[None]:
    """Processes started within do not get what a terminal sends to all, from their first instruction on."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, TO_ALL)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
