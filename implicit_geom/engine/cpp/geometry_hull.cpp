// The expanding hull: from some support points to where B - A is nearest the origin.
#include "geometry_hull.hpp"

#include <algorithm>

namespace geometry {

// The support point of B - A along n; its number, -1 where there is no room.
int Hull::corner(const Vec &n) {
    if (corners == CORNERS) return -1;
    on_a[corners] = farthest(*a, -n), on_b[corners] = farthest(*b, n);
    w[corners] = on_b[corners] - on_a[corners];
    upper = std::min(upper, dot(n, w[corners]));
    return corners++;
}

bool Hull::add_face(int i, int j, int k, const Vec &inner) {
    if (faces == FACES) return false;
    const Vec m = cross(w[j] - w[i], w[k] - w[i]);
    const double area = length(m);
    if (!(area > 1e-24 * size * size)) return false;
    Face &f = face[faces++];
    f = {{i, j, k}, (1 / area) * m, 0, false};
    f.offset = dot(f.n, w[i]);
    if (dot(f.n, inner) > f.offset) {
        std::swap(f.at[1], f.at[2]);
        f.n = -f.n, f.offset = -f.offset;
    }
    return true;
}

// Takes in corner k, where it is outside: the faces that it sees are replaced by those from their border to it.
bool Hull::insert(int k) {
    const double level = 1e-14 * size;
    int border[FACES][2], edges = 0, kept = 0;
    bool seen[FACES];
    int count = 0;
    for (int f = 0; f < faces; f++) {
        seen[f] = dot(face[f].n, w[k]) - face[f].offset > level;
        count += seen[f];
    }
    if (count == 0 || count == faces) return false;
    for (int f = 0; f < faces; f++) {
        if (!seen[f]) continue;
        for (int e = 0; e < 3; e++) {
            const int i = face[f].at[e], j = face[f].at[(e + 1) % 3];
            // an edge that two seen faces share is inside the border
            int at = 0;
            while (at < edges && !(border[at][0] == j && border[at][1] == i)) at++;
            if (at < edges) border[at][0] = border[edges - 1][0], border[at][1] = border[edges - 1][1], edges--;
            else if (edges < FACES) border[edges][0] = i, border[edges++][1] = j;
        }
    }
    if (faces - count + edges > FACES) return false;
    for (int f = 0; f < faces; f++) {
        if (!seen[f]) face[kept++] = face[f];
    }
    faces = kept;
    bool good = true;
    for (int e = 0; e < edges; e++) good = add_face(border[e][0], border[e][1], k, middle) && good;
    return good;
}

bool Hull::begin(const Body &first, const Body &second, double length_, const Vec *d, int count) {
    a = &first, b = &second, size = length_, upper = INFINITY, corners = faces = 0;
    for (int k = 0; k < count; k++) corner(-d[k]);
    // a first tetrahedron, of points far from each other
    int at[4] = {0, 0, 0, 0};
    double most = 0;
    for (int k = 1; k < corners; k++) {
        const Vec u = w[k] - w[0];
        if (dot(u, u) > most) most = dot(u, u), at[1] = k;
    }
    const Vec u = w[at[1]] - w[0];
    most = 0;
    for (int k = 1; k < corners; k++) {
        const Vec m = cross(u, w[k] - w[0]);
        if (dot(m, m) > most) most = dot(m, m), at[2] = k;
    }
    const Vec m = cross(u, w[at[2]] - w[0]);
    most = 0;
    for (int k = 1; k < corners; k++) {
        const double volume = std::fabs(dot(m, w[k] - w[0]));
        if (volume > most) most = volume, at[3] = k;
    }
    if (!(most > 1e-9 * size * size * size)) return false;
    middle = 0.25 * (w[at[0]] + w[at[1]] + w[at[2]] + w[at[3]]);
    bool good = true;
    for (int k = 0; k < 4; k++) good = add_face(at[k], at[(k + 1) % 4], at[(k + 2) % 4], middle) && good;
    for (int k = 0; k < corners && good; k++) insert(k);
    return good;
}

void Hull::expand(double eps) {
    while (corners < CORNERS) {
        int best = -1;
        for (int f = 0; f < faces; f++) {
            if (!face[f].done && (best < 0 || face[f].offset < face[best].offset)) best = f;
        }
        if (best < 0 || face[best].offset >= upper - eps) return;
        const double before = face[best].offset;
        const Vec n = face[best].n;
        const int k = corner(n);
        if (k < 0) return;
        // (a face of the body itself, or as good as one)
        if (dot(n, w[k]) - before <= eps || !insert(k)) face[best].done = true;
    }
}

int Hull::nearest(const bool *tried, double most) const {
    int best = -1;
    for (int f = 0; f < faces; f++) {
        if (!tried[f] && face[f].offset < most && (best < 0 || face[f].offset < face[best].offset)) best = f;
    }
    return best;
}

void Hull::points(int which, Vec &p, Vec &q) const {
    const Face &f = face[which];
    const Vec foot = f.offset * f.n;
    double weight[3], sum = 0;
    for (int k = 0; k < 3; k++) {
        const Vec u = w[f.at[(k + 1) % 3]] - foot, v = w[f.at[(k + 2) % 3]] - foot;
        weight[k] = std::max(dot(cross(u, v), f.n), 0.0);
        sum += weight[k];
    }
    p = q = {0, 0, 0};
    for (int k = 0; k < 3; k++) {
        const double share = sum > 0 ? weight[k] / sum : 1.0 / 3;
        p = p + share * on_a[f.at[k]], q = q + share * on_b[f.at[k]];
    }
}

} // namespace geometry
