"""Tables of integers and addresses through which compiled code finds its data and functions."""

from __future__ import annotations

from enum import IntEnum


class SystemSlot(IntEnum):
    """Slots of the table that describes a system of equations; addresses unless a comment says otherwise."""

    BODIES = 0  # number of moving bodies
    SIZE = 1  # number of unknowns
    GROUPS = 2  # number of groups
    GROUP_TABLES = 3
    MOMENTUM = 4  # function
    MOMENTUM_PARAMETERS = 5
    MOMENTUM_STRIDE = 6  # number of parameters
    PREPARE = 7  # function
    Z = 8
    F = 9
    J = 10
    DZ = 11
    TRIAL = 12
    SHIFT = 13
    TOLERANCE = 14
    INPUTS = 15
    ROWS = 16
    ENTRIES = 17
    REPORT = 18  # out: measure, iterations, largest row
    H = 19  # step of the solve
    MOMENTUM_ROWS = 20  # function: rows alone
    PIVOTS = 21
    SWAPS = 22


class GroupSlot(IntEnum):
    """Slots of the table of a group of contacts of one kind."""

    COUNT = 0
    INPUTS = 1  # numbers of inputs, rows, Jacobian entries, own unknowns, of which contact point
    ROWS = 2
    ENTRIES = 3
    OWN = 4
    POINT = 5
    LINEAR = 6  # functions
    PREPARE = 7
    FINISH = 8
    GATHER = 9  # positions of inputs in z, of rows in F, of entries in J
    SCATTER = 10
    PLACES = 11
    PARAMETERS = 12
    N_PARAMETERS = 13
    FIRST = 14  # bodies
    SECOND = 15
    CONSTANTS = 16
    N_CONSTANTS = 17
    WARM = 18
    NEXT_WARM = 19
    SAVED_WARM = 20
    N_WARM = 21
    START = 22
    N_START = 23
    END = 24
    N_END = 25
    ACTIVE = 26  # place of `active` in END, or -1 where every contact takes part
    RECORD = 27
    N_RECORD = 28
    IMPULSE = 29  # place of P_n among the own unknowns
    MODES = 30  # of the first substep
    OWNER = 31  # a body of each pair that moves
    ROWS_ONLY = 32  # function
    LAG = 33  # place of `lag` in PARAMETERS, or -1
    START_LAG = 34  # and in START
    JOINS = 35  # 1 where both bodies of a pair move


class MarchSlot(IntEnum):
    """Slots of the main table; addresses unless a comment says otherwise."""

    BODIES = 0  # number of all bodies
    MOVING_COUNT = 1
    MOVING = 2  # bodies that move
    STATE = 3
    NEXT = 4
    SAVED = 5
    CONSTANTS = 6
    DERIVED = 7
    END_DERIVED = 8  # derived quantities of stage 2
    FREE = 9
    PRESSED = 10
    NU = 11  # velocities that move the bodies, (B, velocities)
    ENERGY = 12  # (B, energies)
    STAGE_1 = 13  # problems
    STAGE_2 = 14
    OTHERS_COUNT = 15  # pairs that are no candidates
    OTHERS_FIRST = 16
    OTHERS_SECOND = 17
    OTHERS_PLANE = 18
    NEAR = 19  # functions
    ADVANCE = 20
    DRIFT = 21
    ENERGIES = 22
    CONTACT_ENERGY = 23
    ISLANDS = 24  # (B, IslandSlot)
    SCALARS = 25  # see ScalarSlot
    STEPS = 26  # steps to take
    SOLVE_ROWS = 27  # out, a row a solve: states, velocities, records, see `Substep.write`
    SOLVE_STRIDE = 28
    SCRATCH = 29
    RECORDS = 30  # 1 where the records of contacts are wanted
    HISTORY = 31  # the last solutions
    WEIGHTS = 32  # of `extrapolation`
    KINDS = 33  # of the unknowns
    SINGLE = 34  # table of one body in one contact
    ROOM = 35  # number of rows that SOLVE_ROWS holds
    COMPOSED = 36  # out, a number a step: 1 where the guard had it composed


class SingleSlot(IntEnum):
    """Slots of the table of one body in one contact: addresses of arrays, see `single.functions`."""

    UNKNOWNS = 0  # of stage 1, then of stage 2: the present point, the next one, what is precomputed for it
    NEXT_UNKNOWNS = 1
    PRECOMPUTED = 2
    UNKNOWNS_2 = 3
    NEXT_UNKNOWNS_2 = 4
    PRECOMPUTED_2 = 5
    MEASURES = 6
    FLAGS = 7
    SUMMARY = 8
    CONSTANTS = 9  # of the pair
    WARM = 10
    NEXT_WARM = 11
    LAG_ALLOWED = 12
    RECORD = 13  # of lanes, which keep none
    MODE = 14
    FIRST = 15  # bodies (numbers, not addresses)
    SECOND = 16
    KEPT = 17  # unknowns to start from
    FOUND = 18  # unknowns before sliding was found to turn round
    UNSOLVED = 19  # lanes that Newton's method is to go on with


class ScalarSlot(IntEnum):
    """Places of the numbers that change from solve to solve, one a lane."""

    H = 0  # of the solve
    STEP = 1  # of the whole step
    EXIT_REASON = 2  # why the lane has left (`ExitReason`); 0 where it has not
    TAKEN = 3  # steps taken
    WANTED = 4  # steps to take
    GUARD = 5
    STRENGTH = 6  # of gravity, m/s^2
    OVERLAP = 7
    EXACT = 8  # see `EnergyScale`
    STEADY = 9
    PENDING_EXIT = 10  # anything that makes the lane leave, as LEFT
    ITERATIONS = 11
    RESIDUAL = 12
    KNOWN = 13  # how many of the solutions in HISTORY are of use
    REVERSED = 14  # 1 where a contact that slid now slips the other way


class IslandSlot(IntEnum):
    """Numbers kept of each body for the guard, one a lane; see `loops.islands`, `steppers.island_energy`.

    Those from MADE on are an island's, kept with its first body, and zero for the others.
    """

    LABEL = 0  # number of the first body of the island
    NET = 1
    HIT = 2  # 1 where an impact struck the body
    KEEPS = 3  # 1 where the contacts that the body owns keep their modes
    MADE = 4  # J: summed over the substeps of a step
    LEFT = 5  # as MADE, zero where an impact struck
    START = 6  # J at hand
    END = 7
    ROUNDING = 8
    STEADY = 9
