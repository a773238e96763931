"""Threads, forks and signals of the process; equations and properties that are computed once."""
