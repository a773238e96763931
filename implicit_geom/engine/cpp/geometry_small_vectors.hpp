// Vectors and rotations of three numbers.
#pragma once
#include <cmath>

namespace geometry {

struct Vec {
    double x, y, z;
};

inline Vec operator+(const Vec &u, const Vec &v) { return {u.x + v.x, u.y + v.y, u.z + v.z}; }
inline Vec operator-(const Vec &u, const Vec &v) { return {u.x - v.x, u.y - v.y, u.z - v.z}; }
inline Vec operator-(const Vec &u) { return {-u.x, -u.y, -u.z}; }
inline Vec operator*(double s, const Vec &v) { return {s * v.x, s * v.y, s * v.z}; }
inline double dot(const Vec &u, const Vec &v) { return u.x * v.x + u.y * v.y + u.z * v.z; }
inline Vec cross(const Vec &u, const Vec &v) {
    return {u.y * v.z - u.z * v.y, u.z * v.x - u.x * v.z, u.x * v.y - u.y * v.x};
}
inline double length(const Vec &v) { return std::sqrt(dot(v, v)); }
inline Vec vec(const double v[3]) { return {v[0], v[1], v[2]}; }
inline void put(const Vec &v, double out[3]) { out[0] = v.x, out[1] = v.y, out[2] = v.z; }
inline bool finite(const Vec &v) { return std::isfinite(v.x + v.y + v.z); }

// Unit vector; `otherwise` where v has no direction.
inline Vec unit(const Vec &v, const Vec &otherwise) {
    const double big = std::fmax(std::fabs(v.x), std::fmax(std::fabs(v.y), std::fabs(v.z)));
    if (!(big > 1e-300)) return otherwise;
    const Vec w = {v.x / big, v.y / big, v.z / big};
    return (1 / length(w)) * w;
}

// Two unit vectors across a unit vector n, right-handed with it.
inline void across(const Vec &n, Vec &e, Vec &f) {
    const double s = n.z >= 0 ? 1.0 : -1.0;
    const double h = -1 / (s + n.z), k = n.x * n.y * h;
    e = {1 + s * n.x * n.x * h, s * k, -s * n.x};
    f = {k, s + n.y * n.y * h, -n.y};
}

inline double clamp(double v, double low, double high) { return v < low ? low : v > high ? high : v; }

// Rotation, row by row.
struct Turn {
    double m[9];
    Vec operator*(const Vec &v) const {
        return {m[0] * v.x + m[1] * v.y + m[2] * v.z, m[3] * v.x + m[4] * v.y + m[5] * v.z,
                m[6] * v.x + m[7] * v.y + m[8] * v.z};
    }
    // transposed times v
    Vec back(const Vec &v) const {
        return {m[0] * v.x + m[3] * v.y + m[6] * v.z, m[1] * v.x + m[4] * v.y + m[7] * v.z,
                m[2] * v.x + m[5] * v.y + m[8] * v.z};
    }
    Vec axis() const { return {m[2], m[5], m[8]}; }
};

} // namespace geometry
