"""Contact problems, with a solution and guesses, to and from files."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from implicit_geom.interface.errors import SceneError
from implicit_geom.interface.writing import check_replaceable, check_writable, file_name, write_whole
from implicit_geom.solvers.contact.fclib.arrays import SIGNATURE, Arrays, read_arrays
from implicit_geom.solvers.contact.fclib.conversion import DIMENSIONS, LOCAL, arrays_of, problem_of
from implicit_geom.solvers.contact.problem import FILES, ContactProblem
from implicit_geom.solvers.contact.solution import ContactSolution, solution_of

SUFFIXES = (".h5", ".hdf5")
MOST_GUESSES = 400


def read_problem(path: Any) -> ContactProblem:
    """The problem of a file; SceneError, which names the dataset, where there is none."""
    return problem_of(read_arrays(file_name(path)))


def read_solutions(path: Any) -> tuple[ContactProblem, ContactSolution | None, list[ContactSolution]]:
    """The problem of a file, its solution where there is one, and its guesses."""
    arrays = read_arrays(file_name(path))
    problem = problem_of(arrays)
    solution = _solution(arrays, "solution", problem) if "solution" in arrays else None
    guesses = []
    if "guesses" in arrays:
        count = arrays.integer("guesses/number_of_guesses", 0, MOST_GUESSES)
        guesses = [_solution(arrays, f"guesses/{k}", problem) for k in range(1, count + 1)]
    return problem, solution, guesses


def _solution(a: Arrays, group: str, problem: ContactProblem) -> ContactSolution:
    """Velocities and impulses; u is not believed but computed anew."""
    rows = problem.H.shape[1]
    r = a.vector(f"{group}/r", rows)
    a.vector(f"{group}/u", rows)
    m = problem.G.shape[1]
    multiplier = a.vector(f"{group}/l", m) if m else np.zeros(0)
    if _is_local(problem):
        v = problem.v_free + problem.M_inverse @ (problem.H @ r + problem.G @ multiplier)
    else:
        v = a.vector(f"{group}/v", problem.n)
    return ContactSolution(problem, np.asarray(v), r, multiplier, solver="file")


def write_problem(
    problem: ContactProblem,
    path: Any,
    *,
    solution: ContactSolution | None = None,
    guesses: Iterable[Any] = (),
    title: str = "",
    description: str = "",
    force: bool = False,
) -> None:
    """Write a problem with what is known of its solution; the file is whole or not there."""
    import h5py

    path = file_name(path)
    check_output(path, force=force)
    arrays = arrays_of(problem, title, description)
    if solution is not None:
        arrays |= _written("solution", problem, solution)
    found = [_guess(problem, guess) for guess in guesses]
    if len(found) > MOST_GUESSES:
        raise SceneError(f"guesses: {len(found)} were given; a file holds at most {MOST_GUESSES}")
    if found:
        arrays["guesses/number_of_guesses"] = np.array([len(found)], np.int32)
    for k, guess in enumerate(found):
        arrays |= _written(f"guesses/{k + 1}", problem, guess)
    image = io.BytesIO()
    with h5py.File(image, "w") as file:
        for name, array in arrays.items():
            if array.dtype.kind == "S":
                _write_text(file, name, array.item())
            else:
                file.create_dataset(name, data=array)
    write_whole(path, image.getbuffer())


def check_output(path: Path, *, force: bool = False) -> None:
    """Refuse a place where no problem can be written, before any work is done."""
    check_writable(path)
    if path.suffix.lower() not in SUFFIXES:
        raise SceneError(f"{path}: a contact problem is written as HDF5; give a name that ends in .hdf5")
    if not force:
        check_replaceable(path, is_problem, "a contact problem")


def is_problem(path: Path) -> bool:
    """Whether a file holds a contact problem, perhaps a damaged one."""
    with path.open("rb") as file:
        if file.read(len(SIGNATURE)) != SIGNATURE:
            return False
        data = file.read()
    return any(name.encode() in data for name in DIMENSIONS)


def _is_local(problem: ContactProblem) -> bool:
    """Whether a problem was read from a file that has no velocities of bodies."""
    return problem.stored is not None and f"{LOCAL}/spacedim" in problem.stored


def _guess(problem: ContactProblem, guess: Any) -> ContactSolution:
    if isinstance(guess, ContactSolution):
        return guess
    impulse = np.asarray(guess, float)
    if impulse.shape != (problem.H.shape[1],) or not np.all(np.isfinite(impulse)):
        raise SceneError(f"guesses: each must be a ContactSolution or {problem.H.shape[1]} finite impulses")
    return solution_of(problem, problem.ball_impulses(impulse))


def _written(group: str, problem: ContactProblem, s: ContactSolution) -> dict[str, np.ndarray]:
    sizes = (s.velocity.size, s.impulse.size, s.multiplier.size)
    if sizes != (problem.n, problem.H.shape[1], problem.G.shape[1]):
        raise SceneError(f"{group}: is the solution of another problem: its sizes are {sizes}")
    u = problem.contact_velocity(s.velocity)
    out = {f"{group}/u": u, f"{group}/r": s.impulse}
    if not _is_local(problem):
        out[f"{group}/v"] = s.velocity
    if problem.G.shape[1]:
        out[f"{group}/l"] = s.multiplier
    return {name: np.asarray(values, float) for name, values in out.items()}


def _write_text(file: Any, name: str, text: bytes) -> None:
    """A text as C programs read it: of fixed length, with a zero at its end."""
    import h5py

    kind = h5py.h5t.C_S1.copy()
    kind.set_size(len(text) + 1)
    kind.set_strpad(h5py.h5t.STR_NULLTERM)
    group, _, last = name.rpartition("/")
    space = h5py.h5s.create(h5py.h5s.SCALAR)
    dataset = h5py.h5d.create(file.require_group(group).id, last.encode(), kind, space)
    dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array(text, f"S{len(text) + 1}"), mtype=kind)


FILES.update(read=read_problem, write=write_problem, solutions=read_solutions)
