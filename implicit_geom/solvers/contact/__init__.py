"""The velocity-level frictional contact problem, and its solvers behind one interface.

problem      `ContactProblem`: M (v - v_free) = H p + G l,  u = H^T v + w,  G^T v + b = 0, Coulomb's law
law          projections, natural maps and residuals of the law, for all contacts at once
solution     `ContactSolution`, which certifies itself
solve        `solve_contact`: solvers by name
"""
