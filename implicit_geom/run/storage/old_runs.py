"""Runs without a hash, from versions before it, read by a process of their own (`old_run_reader`).

What is missing cannot be made up: a bit that flipped in such a file is found where it breaks HDF5's
structure, deflate's checksum, a range or the second copy of the motion, and nowhere else. A crash or an
endless loop of HDF5 ends that process, which has little time and memory; it runs with the user's own rights,
though, so that a file made to take over HDF5 itself is not what this protects against.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from implicit_geom.interface.errors import SimulationError, one_line
from implicit_geom.run.storage.run_file import Damaged, Parts, cut, memory_limit, read_index

READER = Path(__file__).with_name("old_run_reader.py")
REFUSED = 3  # the exit status with which the reader says why
WAIT = 60.0  # s, and one more a megabyte: for slow disks and busy machines, the reader limits its own time
SIGNATURE = b"\x89HDF\r\n\x1a\n"


def read_old(data: bytes, form: str, versions: range) -> Parts:
    """What an HDF5 file holds; no arrays where its format or version is another one."""
    known = (str(versions[0]), str(versions[-1]))
    command = [sys.executable, "-P", str(READER), str(memory_limit()), form, *known]
    # no plugins for filters, no threads: neither is needed
    environment = {**os.environ, "HDF5_PLUGIN_PRELOAD": "::", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command, input=data, capture_output=True, timeout=WAIT + len(data) / 1e6, env=environment
        )
    except subprocess.TimeoutExpired:
        raise Damaged("HDF5 does not come to an end with it") from None
    except OSError as error:
        raise SimulationError(f"the reader of older runs cannot be started: {error}") from None
    if done.returncode == REFUSED:
        raise Damaged(one_line(done.stderr))
    if done.returncode > 0:
        raise SimulationError(f"the reader of older runs does not work: {one_line(done.stderr[-200:])}")
    if done.returncode < 0:
        raise Damaged("HDF5 cannot read it")
    line, _, rest = done.stdout.partition(b"\n")
    return cut(read_index(line), memoryview(rest))
