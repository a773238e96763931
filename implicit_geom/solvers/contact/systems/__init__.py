"""Linear equations M + H D H^T of velocities, which all solvers with factorisations share.

law_code   impulses of a proximal problem, their derivatives and what is left of momentum, as machine code
ordering   elimination order of bodies, and where fill will be
lu_code    block LU by body, as machine code
system     the equations of a problem: blocks by body, or dense or sparse with bilateral rows
"""
