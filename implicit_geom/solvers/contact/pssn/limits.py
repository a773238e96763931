"""Limits of the inner Newton iteration, shared by its Python and its machine code."""

from __future__ import annotations

STEPS = 12
HALVINGS = 6
PATIENCE = 3  # steps without halving what is left
REFINED = 100.0  # proximal weight c from which rounding calls for refinement
