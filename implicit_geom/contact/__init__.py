"""The NCP of a whole step, and solvers for steps with many contacts."""
