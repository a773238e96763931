// Contacts of a step: the points at which a pair touches with one normal make one contact. Each of them presses;
// friction acts at the point between them where what they press with is balanced, as C07's one contact does.
#pragma once
#include "touching_points.hpp"

namespace engine {

struct PatchContact {
    int first_point, points; // places in the list of points
    double at[3];            // where friction acts, on the pair's second body, m
    Rows rows;
};

// Groups neighbouring points of one pair and one normal, friction in the middle of each; `split`: pairs of which each
// point has friction of its own.
std::vector<PatchContact> patch_contacts(const std::vector<TouchingPoint> &points, const std::vector<char> &split);

// The rows of a contact problem, friction at `at`; a contact of few points or of one. `finds_place`: the problem finds
// where between the points friction acts, from `at` on.
void contact_rows(const Scene &scene, const State &s, const TouchingPoint *points, int count, const double *at,
                  const std::vector<int> &index, bool finds_place, contact::Contact &c, Rows &rows);

// Friction where the patch does not slip at a state, if that is within it: the point about which it turns.
void at_pivot(const State &s, const std::vector<TouchingPoint> &points, PatchContact &contact);

// Where impulses of the points are balanced; returns how far that is from `at`, m. Unchanged where none presses.
double balance(const std::vector<TouchingPoint> &points, PatchContact &contact, const double *p);

} // namespace engine
