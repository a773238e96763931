"""Cases made at random, by kind: `cases(seed, count)` gives them, `check(case)` says what is wrong."""
