"""Steps in machine code: SX functions lowered to LLVM code, and the loops around them.

Everything here repeats what the steppers do, for their ordinary steps; the steppers are the reference, and
take every other step. Without llvmlite they take all of them. To be read in this order (`machine`: how a
CasADi graph becomes machine code at all):

    structs              what is kept of a body and of a pair: named fields of a vector each
    functions/           the equations around a solve, as SX functions
        body             momentum parameters, motion and energy of one body
        rotation_vector  exponential map and its tangent, exact or as series
        pair_start, pair_end, pair    parameters and initial guess of one pair; its contact, from the solution
        any_pair         work of friction, stick or slide, separation
        support_map      closest points to a half-space in closed form
    tables               where compiled code finds its data: slots of addresses and integers
    loops/               LLVM code for any scene
        assembly         rows and Jacobian of the system of equations
        newton           Newton's method
        extrapolation    start values from the last solutions
        substep, rattle_substep       from one state to the next: Euler, RATTLE
    single/              the same for one quadric in contact with a fixed half-space
        contact, stage_1, stage_2, functions    equations in fewer unknowns, and their Newton step
        solve, substep   LLVM code around them
    march                LLVM code of the loop over time steps
    library              what is compiled together; sources: what decides the code
    memory/              NumPy arrays and tables for the compiled code
        arrays, bodies, contacts, system, single, other_pairs, history, output
    engine               scenes in lanes: put in, march, read out
    eligibility          which scenes can be compiled
    runner, lanes        one scene for `simulate`; many for `simulate_batch`
"""
