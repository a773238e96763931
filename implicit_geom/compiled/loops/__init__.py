"""Loops of a compiled step, written as LLVM code: assembly, Newton's method, one substep."""
