// The points at which pairs touch, or may touch next, at a state: gaps, axes and velocities.
#pragma once
#include "contact_problem.hpp"
#include "scene.hpp"

namespace engine {

// thresholds, as in `implicit_geom.equations.thresholds`
constexpr double TOUCH = 1e-10;       // a gap below this, over the smaller body's size, counts as none
constexpr double IMPACT_SPEED = 1e-9; // approach, over the pair's speeds, that counts as an impact
constexpr double SOLVED = 3e-11;      // what a contact problem may leave of the bodies' own speeds
constexpr double SLOWEST = 1e-5;      // the same, over what loads add to the speeds in a step: less is no blow

struct TouchingPoint {
    int pair, tag, fixed;
    bool undirected;                         // the direction of friction is along the normal
    int first, second;                       // bodies in the scene's order
    double point[3], other[3];               // on the second and on the first body of the scene's order
    double n[3], t[3], o[3];                 // n from first to second, in the scene's order
    double gap, velocity, size;              // m; normal velocity, m/s; of the smaller body, m
    double strike;                           // m/s: faster than that it parts, or strikes
    bool closed() const { return gap <= TOUCH * size; }
    bool striking() const { return closed() && velocity < -strike; }
    bool resting() const { return closed() && velocity <= strike; }
};

// Appends the points of a pair; false where its geometry is not certain. `pulled` (bodies): speed added by loads.
bool touching_points(const Scene &scene, const State &s, int pair, const double *pulled, std::vector<TouchingPoint> &out);

// The components of friction that a contact has (t, o, r), and by what they are scaled.
struct Rows {
    int count;
    int component[contact::FRICTION];
    double scale[contact::FRICTION];
};
// Relative velocities of the second body at a point, along n, t, o and about n.
void relative_velocity(const State &s, const TouchingPoint &p, const double *at, double u[4]);

// Impulses of friction rows in world axes and about n, which outlast a frame; and back.
void friction_in_world(const TouchingPoint &p, const Rows &rows, const double *own, double world[4]);
void friction_of_rows(const TouchingPoint &p, const Rows &rows, const double world[4], double *own);

} // namespace engine
