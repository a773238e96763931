"""Thresholds of a step: when bodies touch, strike, slide, turn too far; shifts and roundings.

Ratios, unless a unit is given; what they are relative to stands beside each.
"""

from __future__ import annotations

import numpy as np

# Contact: over the smaller body's size, or the pair's speed scale
TOUCH = 1e-10  # a gap below this, over the smaller body's size, counts as none
CROSSING = 1e-3  # overlap on the way, over the smaller body's size, that counts as crossing
IMPACT_SPEED = 1e-9  # approach at the start of a step, over the speed scale, that counts as an impact
SOLVED = 3e-11  # of the bodies' own speeds: what a contact problem may leave of an approach
SLOWEST_BLOW = 1e-5  # approach, over what loads add to the speeds in a step, below which nothing strikes
SLAP = 1e-2  # jump of a contact along its body, over its size, and approach there that count as an impact

# Sliding: slip over the speeds at hand: of the bodies' fastest points, and what gravity adds in a step
SLIDES = 1e-8  # above which a contact slides
SLIDES_IN_LEDGER = 1e-9  # above which the work of friction is booked as such
# Friction opposes the slip at the start where that is at least this many times what the friction of
# the stage could undo, and the slip of the stage itself otherwise.
LAG = 2.0
TANGENT_KEPT = 0.9  # cosine between normal and reference below which a tangent's reference is kept

# Turning, rad a step
MAX_TURN = 1.5  # of a step of RATTLE; D is singular at 2 pi

# The guard: what an island of contacts may lose in a step, over what it may create
LOSS = 10.0

# The composition of order four [Suzuki 1990]: s, s, 1 - 4s, s, s
S = 1 / (4 - 4 ** (1 / 3))
COMPOSITION = (S, S, 1 - 4 * S, S, S)

# Diagonal added to the Newton matrix (never to the residual): closest points of flat patches are
# not unique while nothing presses, impulses of sticking contacts are not unique in a pile.
POINT_SHIFT = 1e-12
IMPULSE_SHIFT = 1e-9

# Rounding
GAP_ROUNDING = 32 * np.finfo(float).eps  # of a gap, over the lengths it is computed from
ENERGY_ROUNDING = 1e-12  # of the energies at hand: a gain below this is none
REST = 1e-9  # of a body's size: to move by less in a step counts as rest
