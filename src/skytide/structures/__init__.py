"""Data structures of flat arrays for the kernels.  They know geometry and order, not questions."""
