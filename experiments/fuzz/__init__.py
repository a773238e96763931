"""Damaged and hostile input, made at random: each kind has `cases(seed, count)` and `check(case)`.

`check` returns an empty text where a case is taken, or refused in one clean line of a SceneError, ShapeError
or SimulationError, otherwise what was not clean about it.
"""
