"""The velocity-level frictional contact problem, and its solvers behind one interface.

problem      `ContactProblem`: M (v - v_free) = H p + G l,  u = H^T v + w,  G^T v + b = 0, Coulomb's law
law          projections, natural maps and residuals of the law, for all contacts at once
solution     `ContactSolution`, which certifies itself
solve        `solve_contact`: solvers by name
mj14         the solvers `mlcp-fb-rlm`, `mlcp-fb-plm`, `mncp-rlm`, `mncp-plm` of Mylapilli and Jain; `path`
"""

from implicit_geom.solvers.contact.mj14 import entries as _mj14  # noqa: F401
from implicit_geom.solvers.contact.mj14 import path as _path  # noqa: F401
