"""Gauss-Seidel on contacts: each in turn solves its own law exactly, the impulses of all others as they are.

local_law     one contact's law, solved exactly, as machine code
sweep         sweeps over all contacts, in machine code
settle_code   over-relaxed ones until the laws hold
nsgs          the solver that does nothing else
"""
