"""Measured order of convergence."""

from __future__ import annotations

import numpy as np


def order(h: np.ndarray, error: np.ndarray) -> float:
    """The slope of log(error) over log(h) by least squares."""
    return float(np.polyfit(np.log(h), np.log(error), 1)[0])
