"""Steps in machine code: SX functions lowered to LLVM, and the loops around them.

    lowering            SX functions to LLVM code
    code                a small language for loops and branches
    blocks, tables      what is kept in memory, and where
    body_functions      SX functions of one body
    pair_functions      SX functions of one pair: pair_start, pair_end; shared_functions
    assembly, elimination, solver    the Newton iteration
    prediction          start values from the last solutions
    parts, rattle_parts, march       solves, steps, trajectories
    alone_functions, alone_stage     SX functions of one body in one contact with closed forms: support_maps,
                                     turns, small_systems, handing
    alone_solve, alone_parts, alone_memory    its solves, steps and memory
    objects, library    compiled code
    disk, keeping       object files on disk: whose they must be, and how long they stay
    engine, engine_group             a scene's memory, and back to the steppers' objects
    runner, lanes       one scene for `simulate`; many for `simulate_batch`

Everything here repeats what the steppers do, for their ordinary steps; the steppers are the
reference, and take every other step. Without llvmlite they take all of them.
"""
