// LU of a sparse matrix of small blocks with a symmetric pattern and unsymmetric values.
#pragma once
#include <utility>
#include <vector>

class BlockLU {
  public:
    // Blocks of 6 or 3 rows. The pattern: `edges` join the blocks that have entries beside the diagonal. Ordered by least degree.
    BlockLU(int blocks, int size, const std::vector<std::pair<int, int>> &edges);
    void clear();
    double *block(int i, int j); // where entries of block (i, j) are added; row by row
    bool factorise();            // no row exchanges across blocks; false where one is singular
    void solve(double *x) const; // in place

  private:
    template <int M> bool factorise_blocks();
    int at(int i, int j) const; // number of the block, in elimination order
    int n, m, entries;
    std::vector<int> place, order;          // block -> position, position -> block
    std::vector<std::vector<int>> after;    // later neighbours of a position
    std::vector<int> first;                 // number of its first block below the diagonal
    std::vector<double> values;             // diagonal, then for each position its L and U blocks in turn
    std::vector<int> pivots;
    std::vector<int> targets;               // of updates, in the order in which they are made
};
