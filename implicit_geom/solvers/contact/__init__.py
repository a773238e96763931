"""The velocity-level frictional contact problem, and its solvers behind one interface.

problem      `ContactProblem`: M (v - v_free) = H p + G l,  u = H^T v + w,  G^T v + b = 0, Coulomb's law
law          projections, natural maps and residuals of the law, for all contacts at once
solution     `ContactSolution`, which certifies itself
solve        `solve_contact`: solvers by name
blocks       a problem as dense blocks by body and contact
systems/     velocity equations M + H D H^T, factorised body by body in machine code
sweeps/      `nsgs`: Gauss-Seidel with exact local solves, in machine code
pssn/        `pssn`, the default: proximal semi-smooth Newton
admm         `admm`: alternating directions with De Saxce's shift
cadoux_acary `cadoux-acary`: fixed point on the shift, interior points inside
mj14/        `mlcp-fb-rlm`, `mlcp-fb-plm`, `mncp-rlm`, `mncp-plm` of Mylapilli and Jain; `path`
t10/         `t10`: Todorov's implicit complementarity
fclib/       files in the layout of FCLIB
"""

# each enters its solvers by name
import implicit_geom.solvers.contact.admm
import implicit_geom.solvers.contact.cadoux_acary
import implicit_geom.solvers.contact.fclib.files
import implicit_geom.solvers.contact.mj14.entries
import implicit_geom.solvers.contact.mj14.path
import implicit_geom.solvers.contact.pssn.solver
import implicit_geom.solvers.contact.sweeps.nsgs
import implicit_geom.solvers.contact.t10.solver  # noqa: F401
