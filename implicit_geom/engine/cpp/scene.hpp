// A scene as the engine knows it, the state of its bodies, and what a step did.
#pragma once
#include "geometry.hpp"
#include <string>
#include <vector>

namespace engine {

struct Law {
    double mu, e[3], restitution; // e: t, o, r; r in m
    int directed, frame;          // whether t has a direction; the body that it turns with, or -1
    double direction[3];
};

struct Piece {
    geometry::Shape shape;
    double x[3], R[9];        // frame of the primitive in the body's frame, from its centre of mass
    double centre[3], radius; // of a ball that holds it, in the body's frame; radius < 0: it has none
    int body;
};

struct Pair {
    int piece[2], body[2], law;
    int swapped; // the scene's order of bodies is (second, first)
    double size; // of the smaller piece, m
};

// Asked where a pair's patch is not certain: pieces and the poses of their primitives, as in `geometry::patch`.
using Foreign = int (*)(int pair, const double *x_a, const double *R_a, const double *x_b, const double *R_b,
                        geometry::Patch *out);

struct Scene {
    int dim = 3, dof = 6, bodies = 0;
    double gravity[3] = {0, 0, 0};
    std::vector<double> mass, J, size, depth, lowest, load; // J (bodies, 9) body frame; load (bodies, 6) world
    std::vector<char> moves;
    std::vector<Piece> pieces;
    std::vector<Pair> pairs;
    std::vector<Law> laws;
    Foreign foreign = nullptr;
    // options
    double tolerance = 1e-10, guard = 1e-3;
    int max_impacts = 12;
    bool fourth = false; // compose flights to order four
    bool euler = false;  // whole steps in the end-of-step form
};

struct BodyState {
    double x[3], q[4], R[9], v[3], w[3]; // in the plane q[0] is the angle
};

struct State {
    double time = 0;
    std::vector<BodyState> body;
};

enum Stage { EULER, POSITION, VELOCITY, LAGGED, IMPACT };
// why a step was not taken in flights alone
enum Why { PLAIN, MANY_IMPACTS, ROUNDS_DIVERGE, GAINS, NO_INSTANT };
enum Form { EULER_STEP, RATTLE_STEP, IMPACT_STEP };

struct ContactRecord {
    int pair, feature, stage, impact, lagged;
    int slid;    // it slipped at the start of its stage, where it acts: of patches, and where friction lags
    int tag;     // as in `TouchingPoint`
    int own_gap; // the law's gap is that at `point`, not at `end_point`
    double point[3], n[3], t[3], o[3], end_point[3];
    double gap, p_n, p_f[3], slip[3], bounce, approach;
};

struct Solve {
    int form = RATTLE_STEP;
    double h = 0;
    State start, end;
    std::vector<double> half;    // (bodies, 6) the velocities that moved the bodies
    std::vector<char> bodies;    // which of them it moves
    std::vector<ContactRecord> contacts;
    int iterations = 0;
    double residual = 0, overlap = 0;
    std::vector<BodyState> moved; // instead of `start` and `end`, while islands are apart: where it takes its bodies
};

// the state after some bodies have moved with the velocities nu (bodies, 6) for the time h
void advance(const Scene &scene, const State &start, const double *nu, double h, State &end, const std::vector<int> &members);
void set_rotation(const Scene &scene, BodyState &b);
void world_inertia(const Scene &scene, const BodyState &b, int body, double J_W[9]);
// T of a rotation by theta: the inverse tangent of the exponential map, D(theta)
void tangent_inverse(const double theta[3], double D[9]);

} // namespace engine
