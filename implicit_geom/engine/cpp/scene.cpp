#include "scene.hpp"
#include "linear_algebra.hpp"
#include <cmath>

namespace engine {

void set_rotation(const Scene &scene, BodyState &b) {
    la::zero(b.R, 9);
    if (scene.dim == 2) {
        const double c = std::cos(b.q[0]), s = std::sin(b.q[0]);
        b.R[0] = b.R[4] = c, b.R[1] = -s, b.R[3] = s, b.R[8] = 1;
        return;
    }
    const double w = b.q[0], *v = b.q + 1;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) b.R[3 * i + j] = 2 * v[i] * v[j];
    b.R[1] -= 2 * w * v[2], b.R[3] += 2 * w * v[2];
    b.R[2] += 2 * w * v[1], b.R[6] -= 2 * w * v[1];
    b.R[5] -= 2 * w * v[0], b.R[7] += 2 * w * v[0];
    const double diagonal = 1 - 2 * la::dot(v, v);
    for (int i = 0; i < 3; ++i) b.R[4 * i] += diagonal;
}

void advance(const Scene &scene, const State &start, const double *nu, double h, State &end, const std::vector<int> &members) {
    end.time = start.time + h;
    if (end.body.size() != start.body.size()) end.body = start.body;
    for (int i : members) {
        const BodyState &a = start.body[i];
        BodyState &b = end.body[i];
        const double *v = nu + 6 * i, *w = v + 3;
        for (int k = 0; k < 3; ++k) b.x[k] = a.x[k] + h * v[k], b.v[k] = v[k], b.w[k] = w[k];
        if (scene.dim == 2) {
            b.q[0] = a.q[0] + h * w[2], b.q[1] = b.q[2] = b.q[3] = 0;
        } else {
            const double theta[3] = {h * w[0], h * w[1], h * w[2]}, half = la::length(theta) / 2;
            const double f = half > 0 ? std::sin(half) / half / 2 : 0.5;
            const double p[4] = {std::cos(half), f * theta[0], f * theta[1], f * theta[2]}, *q = a.q;
            double r[4] = {p[0] * q[0] - p[1] * q[1] - p[2] * q[2] - p[3] * q[3],
                           p[0] * q[1] + p[1] * q[0] + p[2] * q[3] - p[3] * q[2],
                           p[0] * q[2] - p[1] * q[3] + p[2] * q[0] + p[3] * q[1],
                           p[0] * q[3] + p[1] * q[2] - p[2] * q[1] + p[3] * q[0]};
            const double norm = std::sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2] + r[3] * r[3]);
            for (int k = 0; k < 4; ++k) b.q[k] = r[k] / norm;
        }
        set_rotation(scene, b);
    }
}

void world_inertia(const Scene &scene, const BodyState &b, int body, double J_W[9]) {
    const double *J = &scene.J[9 * std::size_t(body)];
    if (scene.dim == 2) la::copy(J, J_W, 9);
    else la::congruent(b.R, J, J_W);
}

void tangent_inverse(const double theta[3], double D[9]) {
    static const double series[9] = {1. / 12, 1. / 720, 1. / 30240, 1. / 1209600, 1. / 47900160,
                                     691. / 1307674368000, 1. / 74724249600, 3617. / 10670622842880000,
                                     43867. / 5109094217170944000};
    const double square = la::dot(theta, theta);
    double c = 0;
    if (square < 0.25) {
        for (int k = 8; k >= 0; --k) c = c * square + series[k];
    } else {
        const double half = std::sqrt(square) / 2;
        c = (1 - half / std::tan(half)) / square;
    }
    const double S[9] = {0, -theta[2], theta[1], theta[2], 0, -theta[0], -theta[1], theta[0], 0};
    double SS[9];
    la::product(S, S, SS);
    for (int i = 0; i < 9; ++i) D[i] = (i % 4 == 0) - S[i] / 2 + c * SS[i];
}

} // namespace engine
