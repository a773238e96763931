// What Python calls, by ctypes: a scene from arrays, steps of it, and what they did as arrays.
#include "linear_algebra.hpp"
#include "step.hpp"
#include <algorithm>
#include <chrono>
#include <cstring>

using namespace engine;

#if defined(__GNUC__)
#define SHOWN __attribute__((visibility("default")))
#else
#define SHOWN
#endif

namespace {

struct Handle {
    Scene scene;
    // of the last march: its solves, and the steps that they belong to
    std::vector<Solve> solves;
    std::vector<int> step_of;
    std::vector<double> notes; // (steps, 7): end-of-step form, divided, not of order four, why, wall time in s, rounds, factorisations
    std::size_t contacts = 0;
    std::string reason;
    // what pressed in the last step, and where that ended; `given` instead of a step
    std::vector<Pressed> pressed;
    State last;
    bool given = false;
};

bool same(const State &a, const State &b) {
    if (a.body.size() != b.body.size()) return false;
    for (std::size_t i = 0; i < a.body.size(); ++i) {
        const BodyState &one = a.body[i], &two = b.body[i];
        if (!std::equal(one.x, one.x + 3, two.x) || !std::equal(one.q, one.q + 4, two.q)) return false;
        if (!std::equal(one.v, one.v + 3, two.v) || !std::equal(one.w, one.w + 3, two.w)) return false;
    }
    return true;
}

} // namespace

extern "C" {

SHOWN void *ig_scene(int dim, int bodies, const double *gravity, const double *mass, const double *J, const double *size,
               const double *depth, const double *lowest, const double *load, const char *moves, double tolerance,
               double guard, int max_impacts, int fourth, int euler) {
    auto *h = new Handle;
    Scene &s = h->scene;
    const std::size_t n = std::size_t(bodies);
    s.dim = dim, s.dof = dim == 2 ? 3 : 6, s.bodies = bodies;
    la::copy(gravity, s.gravity);
    s.mass.assign(mass, mass + n), s.J.assign(J, J + 9 * n), s.size.assign(size, size + n);
    s.depth.assign(depth, depth + n), s.lowest.assign(lowest, lowest + n), s.load.assign(load, load + 6 * n);
    s.moves.assign(moves, moves + n);
    s.tolerance = tolerance, s.guard = guard, s.max_impacts = max_impacts, s.fourth = fourth, s.euler = euler;
    return h;
}

SHOWN void ig_scene_free(void *handle) { delete static_cast<Handle *>(handle); }

SHOWN void ig_scene_piece(void *handle, int body, int kind, const double *par, double size, const double *inside,
                    const double *x, const double *R, const double *centre, double radius, int vertices,
                    const double *vertex, int planes, const double *plane, int rings, const int *ring, const int *start) {
    Scene &s = static_cast<Handle *>(handle)->scene;
    Piece p;
    p.body = body, p.radius = radius;
    p.shape.dim = s.dim, p.shape.kind = kind, p.shape.size = size;
    la::copy(par, p.shape.par, 4), la::copy(inside, p.shape.inside);
    la::copy(x, p.x), la::copy(R, p.R, 9), la::copy(centre, p.centre);
    p.shape.vertices.assign(vertex, vertex + 3 * std::size_t(vertices));
    p.shape.planes.assign(plane, plane + 4 * std::size_t(planes));
    p.shape.ring.assign(ring, ring + rings);
    p.shape.start.assign(start, start + (planes ? planes + 1 : 0));
    s.pieces.push_back(p);
}

SHOWN void ig_scene_laws(void *handle, int count, const double *numbers, const int *directed, const int *frame) {
    Scene &s = static_cast<Handle *>(handle)->scene;
    for (int k = 0; k < count; ++k) {
        const double *v = numbers + 8 * k;
        Law law;
        law.mu = v[0], law.e[0] = v[1], law.e[1] = v[2], law.e[2] = v[3], law.restitution = v[4];
        la::copy(v + 5, law.direction);
        law.directed = directed[k], law.frame = frame[k];
        s.laws.push_back(law);
    }
}

SHOWN void ig_scene_pairs(void *handle, int count, const int *numbers, const double *size) {
    Scene &s = static_cast<Handle *>(handle)->scene;
    s.pairs.resize(std::size_t(count));
    for (int k = 0; k < count; ++k) {
        const int *v = numbers + 6 * k;
        s.pairs[k] = {{v[0], v[1]}, {v[2], v[3]}, v[4], v[5], size[k]};
    }
}

SHOWN void ig_scene_foreign(void *handle, Foreign foreign) { static_cast<Handle *>(handle)->scene.foreign = foreign; }

// Steps of length h from a state (bodies, 3), (bodies, 4), (bodies, 3), (bodies, 3), which end at `ends`. Returns how
// many were taken; counts: their solves and contacts.
SHOWN int ig_march(void *handle, double time, const double *x, const double *q, const double *v, const double *w,
                   double step, int steps, const double *ends, int *counts) {
    auto *h = static_cast<Handle *>(handle);
    State s;
    s.time = time;
    s.body.resize(std::size_t(h->scene.bodies));
    for (int b = 0; b < h->scene.bodies; ++b) {
        BodyState &own = s.body[b];
        la::copy(x + 3 * b, own.x), la::copy(q + 4 * b, own.q, 4), la::copy(v + 3 * b, own.v), la::copy(w + 3 * b, own.w);
        set_rotation(h->scene, own);
    }
    h->solves.clear(), h->step_of.clear(), h->notes.clear(), h->reason.clear();
    h->contacts = 0;
    if (!h->given && !same(s, h->last)) h->pressed.clear();
    h->given = false;
    int taken = 0;
    for (; taken < steps; ++taken) {
        const auto started = std::chrono::steady_clock::now();
        Outcome out;
        take_step(h->scene, s, step, h->pressed, out);
        if (!out.reason.empty()) {
            h->reason = out.reason;
            break;
        }
        s = out.solves.back().end;
        s.time = ends[taken];
        for (Solve &f : out.solves) {
            h->contacts += f.contacts.size();
            h->solves.push_back(std::move(f));
            h->step_of.push_back(taken);
        }
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
        for (double note : {double(out.used_euler), double(out.used_parts), double(out.used_plain), double(out.divided), took.count(), double(out.rounds),
                            double(out.factorisations)})
            h->notes.push_back(note);
    }
    h->last = s;
    counts[0] = int(h->solves.size()), counts[1] = int(h->contacts);
    return taken;
}

// What pressed in the last step of crowds: rows (count, 8) of pair, tag, normal, friction (4) and weight; their number.
SHOWN int ig_pressed(void *handle, double *rows) {
    const auto &pressed = static_cast<Handle *>(handle)->pressed;
    for (std::size_t k = 0; rows && k < pressed.size(); ++k) {
        const Pressed &p = pressed[k];
        const double row[8] = {double(p.pair), double(p.tag), p.normal, p.friction[0], p.friction[1], p.friction[2], p.friction[3], p.weight};
        la::copy(row, rows + 8 * k, 8);
    }
    return int(pressed.size());
}

// The same given back: the next march goes on from there.
SHOWN void ig_press(void *handle, int count, const double *rows) {
    auto *h = static_cast<Handle *>(handle);
    h->pressed.assign(std::size_t(count), Pressed());
    for (Pressed &p : h->pressed) {
        p.pair = int(rows[0]), p.tag = int(rows[1]), p.normal = rows[2], p.weight = rows[7];
        la::copy(rows + 3, p.friction, 4), rows += 8;
    }
    h->given = true;
}

// Of the last march: numbers (S, 6): step, form, start time, h, iterations, residual; states at the ends (S, bodies, 13):
// x q v w; half (S, bodies, 6); bodies (S, bodies); notes (steps, 7).
SHOWN void ig_solves(void *handle, double *numbers, double *states, double *half, char *bodies, double *notes) {
    auto *h = static_cast<Handle *>(handle);
    const std::size_t B = std::size_t(h->scene.bodies);
    for (std::size_t k = 0; k < h->solves.size(); ++k) {
        const Solve &f = h->solves[k];
        const double row[6] = {double(h->step_of[k]), double(f.form), f.start.time, f.h, double(f.iterations), f.residual};
        std::memcpy(numbers + 6 * k, row, sizeof row);
        for (std::size_t b = 0; b < B; ++b) {
            const BodyState &s = f.end.body[b];
            double *to = states + (k * B + b) * 13;
            la::copy(s.x, to), la::copy(s.q, to + 3, 4), la::copy(s.v, to + 7), la::copy(s.w, to + 10);
        }
        std::memcpy(half + 6 * B * k, f.half.data(), 6 * B * sizeof(double));
        std::memcpy(bodies + B * k, f.bodies.data(), B);
    }
    std::memcpy(notes, h->notes.data(), h->notes.size() * sizeof(double));
}

// Contact by contact: whole (C, 10): solve, pair, feature, first, second, stage, impact, lagged, slid, own_gap;
// numbers (C, 25): point, n, t, o, end_point, gap, p_n, p_f, slip, bounce, approach.
SHOWN void ig_contacts(void *handle, int *whole, double *numbers) {
    auto *h = static_cast<Handle *>(handle);
    for (std::size_t i = 0; i < h->solves.size(); ++i)
        for (const ContactRecord &c : h->solves[i].contacts) {
            const Pair &pair = h->scene.pairs[std::size_t(c.pair)];
            const int one = std::min(pair.body[0], pair.body[1]), two = std::max(pair.body[0], pair.body[1]);
            const int row[10] = {int(i), c.pair, c.feature, one, two, c.stage, c.impact, c.lagged, c.slid, c.own_gap};
            std::memcpy(whole, row, sizeof row), whole += 10;
            const double *vectors[5] = {c.point, c.n, c.t, c.o, c.end_point};
            for (int k = 0; k < 5; ++k) la::copy(vectors[k], numbers + 3 * k);
            numbers[15] = c.gap, numbers[16] = c.p_n;
            la::copy(c.p_f, numbers + 17), la::copy(c.slip, numbers + 20);
            numbers[23] = c.bounce, numbers[24] = c.approach;
            numbers += 25;
        }
}

// Why the last march ended early.
SHOWN int ig_reason(void *handle, char *text, int most) {
    const std::string &s = static_cast<Handle *>(handle)->reason;
    const int n = std::min(most, int(s.size()));
    std::memcpy(text, s.data(), std::size_t(n));
    return n;
}
}
