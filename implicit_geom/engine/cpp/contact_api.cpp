// The contact solver for other languages: plain numbers in and out.
#include "contact_problem.hpp"
#include <algorithm>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

extern "C" {

// One contact problem of bodies with dof velocities: M, M_inverse (bodies, dof, dof), v_free (bodies, dof); of each
// contact body (2), normals, rows, mu, J (2, most, dof), w (most). Out: p, u (contacts, most), v (bodies, dof),
// counts (2) of factorisations and sweeps; returns the error of the law, m/s, or -1 where there are too many rows.
double ig_contact_solve(int dof, int bodies, const double *M, const double *M_inverse, const double *v_free, int contacts,
                        int most, const int *body, const int *normals, const int *rows, const double *mu,
                        const double *J, const double *w, double tolerance, double enough, double *p, double *u,
                        double *v, int *counts) {
    using namespace contact;
    if (most > ROWS || dof > DOF) return -1;
    Problem q;
    const std::size_t size = std::size_t(bodies) * std::size_t(dof), wide = std::size_t(dof);
    q.dof = dof, q.bodies = bodies;
    q.M.assign(M, M + size * wide), q.M_inverse.assign(M_inverse, M_inverse + size * wide);
    q.v_free.assign(v_free, v_free + size);
    q.contacts.assign(std::size_t(contacts), Contact{});
    for (int k = 0; k < contacts; ++k) {
        Contact &c = q.contacts[std::size_t(k)];
        std::copy(body + 2 * k, body + 2 * k + 2, c.body);
        c.normals = normals[k], c.rows = rows[k], c.mu = mu[k];
        for (int side = 0; side < 2; ++side)
            for (int r = 0; r < most; ++r, J += dof) std::copy(J, J + dof, c.J[side][r]);
        std::copy(w, w + most, c.w), w += most;
    }
    Solution s;
    solve(q, tolerance, enough, s);
    for (std::size_t k = 0; k < std::size_t(contacts); ++k, p += most, u += most) {
        std::copy(&s.p[k * ROWS], &s.p[k * ROWS] + rows[k], p);
        std::copy(&s.u[k * ROWS], &s.u[k * ROWS] + rows[k], u);
    }
    std::copy(s.v.begin(), s.v.end(), v);
    counts[0] = s.factorisations, counts[1] = s.sweeps;
    return s.error;
}

} // extern "C"

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
