"""What the primitives share: types and their checks, LAPACK on stacks of matrices, matrices in terms of `lax`."""
