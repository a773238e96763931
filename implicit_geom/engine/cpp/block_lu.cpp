#include "block_lu.hpp"
#include "linear_algebra.hpp"
#include <algorithm>
#include <cstring>

BlockLU::BlockLU(int blocks, int size, const std::vector<std::pair<int, int>> &edges)
    : n(blocks), m(size), entries(size * size), place(blocks), order(blocks), after(blocks), first(blocks) {
    std::vector<std::vector<int>> near(n);
    for (auto [i, j] : edges)
        if (i != j) near[i].push_back(j), near[j].push_back(i);
    for (auto &list : near) {
        std::sort(list.begin(), list.end());
        list.erase(std::unique(list.begin(), list.end()), list.end());
    }
    std::vector<char> gone(n, 0);
    for (int k = 0; k < n; ++k) {
        int best = -1;
        for (int i = 0; i < n; ++i)
            if (!gone[i] && (best < 0 || near[i].size() < near[best].size())) best = i;
        order[k] = best, place[best] = k, gone[best] = 1;
        const std::vector<int> list = near[best];
        for (int i : list) {
            auto &own = near[i];
            own.erase(std::lower_bound(own.begin(), own.end(), best));
            std::vector<int> merged;
            std::set_union(own.begin(), own.end(), list.begin(), list.end(), std::back_inserter(merged));
            merged.erase(std::lower_bound(merged.begin(), merged.end(), i));
            own.swap(merged);
        }
        after[k] = list;
    }
    int count = n;
    for (int k = 0; k < n; ++k) {
        for (int &i : after[k]) i = place[i];
        std::sort(after[k].begin(), after[k].end());
        first[k] = count;
        count += 2 * int(after[k].size());
    }
    values.assign(std::size_t(count) * entries, 0.0);
    pivots.resize(std::size_t(n) * m);
    for (int k = 0; k < n; ++k)
        for (int i : after[k])
            for (int j : after[k]) targets.push_back(at(i, j));
}

int BlockLU::at(int i, int j) const {
    if (i == j) return i;
    const int k = std::min(i, j);
    const auto &list = after[k];
    const int where = int(std::lower_bound(list.begin(), list.end(), std::max(i, j)) - list.begin());
    return first[k] + 2 * where + (i < j ? 1 : 0);
}

void BlockLU::clear() { std::fill(values.begin(), values.end(), 0.0); }

double *BlockLU::block(int i, int j) { return values.data() + std::size_t(at(place[i], place[j])) * entries; }

bool BlockLU::factorise() {
    const int *target = targets.data();
    double column[36];
    for (int k = 0; k < n; ++k) {
        double *D = values.data() + std::size_t(k) * entries;
        int *pivot = pivots.data() + std::size_t(k) * m;
        if (!la::factorise(D, pivot, m)) return false;
        const int later = int(after[k].size());
        double *own = values.data() + std::size_t(first[k]) * entries;
        // U <- D^-1 U
        for (int a = 0; a < later; ++a) {
            double *U = own + std::size_t(2 * a + 1) * entries;
            for (int c = 0; c < m; ++c) la::substitute(D, pivot, m, U + c, m);
        }
        for (int a = 0; a < later; ++a) {
            const double *L = own + std::size_t(2 * a) * entries;
            for (int b = 0; b < later; ++b) {
                const double *U = own + std::size_t(2 * b + 1) * entries;
                double *T = values.data() + std::size_t(*target++) * entries;
                for (int r = 0; r < m; ++r) {
                    for (int c = 0; c < m; ++c) column[c] = 0.0;
                    for (int q = 0; q < m; ++q) {
                        const double f = L[r * m + q];
                        for (int c = 0; c < m; ++c) column[c] += f * U[q * m + c];
                    }
                    for (int c = 0; c < m; ++c) T[r * m + c] -= column[c];
                }
            }
        }
    }
    return true;
}

void BlockLU::solve(double *x) const {
    std::vector<double> y(std::size_t(n) * m);
    for (int k = 0; k < n; ++k) std::memcpy(&y[std::size_t(k) * m], x + std::size_t(order[k]) * m, sizeof(double) * m);
    // forward: y_k is not yet multiplied by D^-1 where later ones see it through D^-1 U
    for (int k = 0; k < n; ++k) {
        double *own = &y[std::size_t(k) * m];
        la::substitute(values.data() + std::size_t(k) * entries, pivots.data() + std::size_t(k) * m, m, own);
        for (std::size_t a = 0; a < after[k].size(); ++a) {
            const double *L = values.data() + (std::size_t(first[k]) + 2 * a) * entries;
            double *other = &y[std::size_t(after[k][a]) * m];
            for (int r = 0; r < m; ++r)
                for (int c = 0; c < m; ++c) other[r] -= L[r * m + c] * own[c];
        }
    }
    for (int k = n - 1; k >= 0; --k) {
        double *own = &y[std::size_t(k) * m];
        for (std::size_t a = 0; a < after[k].size(); ++a) {
            const double *U = values.data() + (std::size_t(first[k]) + 2 * a + 1) * entries;
            const double *other = &y[std::size_t(after[k][a]) * m];
            for (int r = 0; r < m; ++r)
                for (int c = 0; c < m; ++c) own[r] -= U[r * m + c] * other[c];
        }
    }
    for (int k = 0; k < n; ++k) std::memcpy(x + std::size_t(order[k]) * m, &y[std::size_t(k) * m], sizeof(double) * m);
}
