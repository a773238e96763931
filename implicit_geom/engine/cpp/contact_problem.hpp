// The velocity-level contact problem of some bodies, and its solver.
//
//     M (v - v_free) = H p,   u = G^T v + w,   G = H unless a contact says otherwise
//     0 <= p_n _|_ u_n >= 0 at every point,   p_f in the ball of radius mu sum p_n, maximally dissipating against u_f
//
// Friction of a patch acts where the points' impulses are balanced, a = sum p_n x / sum p_n, which the problem finds:
// with a from the place of the friction rows, u_f = u_f(there) + c u_s,  p_s = c p_f,  c = sum p_n lever / sum p_n;
// u_s is the spin about the normal and p_s the moment about it, the contact's last row.
//
// Friction rows are scaled by the axes e of the friction ellipsoid: u_f = e v_f, p_f = p / e [C07, eqs. 5, 11].
#pragma once
#include <vector>

namespace contact {

constexpr int FRICTION = 3;  // rows of friction, at the most
constexpr int NORMALS = 16;  // points of one contact, at the most
constexpr int ROWS = NORMALS + FRICTION + 1;
constexpr int DOF = 6;  // velocities of a body; three in the plane

// A contact at one point, or at the extreme points of a patch: each presses by itself, and friction acts at one
// point between them, within mu times the sum of what they press with.
struct Contact {
    int body[2];              // first, second; -1 where a body does not move
    int normals, rows;        // rows of normals first, then those of friction, then that of spin
    int turns = 0;            // 1 where it has a row of spin
    double mu;
    double lever[NORMALS][FRICTION]; // of each point, m: what spin about the normal adds to u_f there
    double J[2][ROWS][DOF];   // of the relative velocity second - first, signs included
    bool turned = false;      // whether G stands beside it
    double G[2][ROWS][DOF];
    const double *seen(int side, int row) const { return turned ? G[side][row] : J[side][row]; }
    double w[ROWS];           // m/s
    int end() const { return rows - turns; } // of the rows of friction
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

// Solves to `tolerance`, m/s, or to `enough` where no more is to be had, or to `share` of the error at the start;
// starts from s.p where it has the right length. Whether it got there; the error that is left stands in the solution.
// Without `patience`, or with an error at the start below `little`, a hard problem is given up early.
bool solve(const Problem &problem, double tolerance, double enough, Solution &s, double share = 0, bool patience = true,
           double little = 0);

// What a contact does where its mode is known: it sticks, or slides along a direction, p_f = -mu sum p_n along.
struct Held {
    bool slides;
    double along[FRICTION]; // unit
};

// The same with all contacts closed in known modes: linear. False where it is not solved to `enough`, m/s.
bool solve_held(const Problem &problem, const std::vector<Held> &held, double enough, Solution &s);


} // namespace contact
