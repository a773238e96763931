// The velocity-level contact problem of some bodies, and its solver.
//
//     M (v - v_free) = H p,   u = H^T v + w
//     0 <= p_n _|_ u_n >= 0 at every point,   p_f in the ball of radius mu sum p_n, maximally dissipating against u_f
//
// Friction rows are scaled by the axes e of the friction ellipsoid: u_f = e v_f, p_f = p / e [C07, eqs. 5, 11].
#pragma once
#include <vector>

namespace contact {

constexpr int FRICTION = 3;  // rows of friction, at the most
constexpr int NORMALS = 16;  // points of one contact, at the most
constexpr int ROWS = NORMALS + FRICTION;
constexpr int DOF = 6;  // velocities of a body; three in the plane

// A contact at one point, or at the extreme points of a patch: each presses by itself, and friction acts at one
// point between them, within mu times the sum of what they press with.
struct Contact {
    int body[2];              // first, second; -1 where a body does not move
    int normals, rows;        // rows of normals first, then those of friction
    double mu;
    double J[2][ROWS][DOF];   // of the relative velocity second - first, signs included
    double w[ROWS];           // m/s
};

struct Problem {
    int dof = DOF;
    int bodies = 0;
    std::vector<double> M, M_inverse; // (bodies, dof, dof); M may be unsymmetric, its symmetric part is positive
    std::vector<double> v_free;       // (bodies, dof)
    std::vector<Contact> contacts;
};

struct Solution {
    std::vector<double> v; // (bodies, dof)
    std::vector<double> p; // (contacts, ROWS) N s, friction over e
    std::vector<double> u; // (contacts, ROWS) m/s, friction times e
    double error = 0;      // of the law, m/s
    double weight = 0;     // of the last subproblem: what the next solve from here starts with
    int factorisations = 0, sweeps = 0;
};

// Solves to `tolerance`, m/s, or to `enough` where no more is to be had; starts from s.p where it has the right
// length. The error that is left stands in the solution: the caller decides whether it will do.
void solve(const Problem &problem, double tolerance, double enough, Solution &s);

// What a contact does where its mode is known: it sticks, or slides along a direction, p_f = -mu sum p_n along.
struct Held {
    bool slides;
    double along[FRICTION]; // unit
};

// The same with all contacts closed in known modes: linear. False where it is not solved to `enough`, m/s.
bool solve_held(const Problem &problem, const std::vector<Held> &held, double enough, Solution &s);


} // namespace contact
