"""Todorov's implicit nonlinear complementarity [T10], every ingredient with a switch.

maps           f(x), v(x), their derivatives, the residual r(x)
edges          Jacobians on edges, tangent bases, projection on the cone
search         the edge-aware search along the dogleg
gauss_newton   the iteration
starts         starts, the scaling of x
recovery       attempts one after the other, from local minima on
options        `T10Options`
solver         the solver `t10` of contact problems
"""
