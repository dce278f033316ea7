"""Helpers of the primitives: types and their checks, LAPACK on stacks of matrices, matrices in terms of `lax`."""
