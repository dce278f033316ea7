"""Solve linear systems of several structures, and differentiate."""

import jax
import jax.numpy as jnp
import lineax as lx

matrix = jax.random.normal(jax.random.key(0), (4, 4)) + 4 * jnp.eye(4)
vector = jnp.arange(4.0)


def solve(matrix, vector):
    return lx.linear_solve(lx.MatrixLinearOperator(matrix), vector).value


assert jnp.allclose(matrix @ jax.jit(solve)(matrix, vector), vector, atol=1e-4)
assert jax.grad(lambda m: solve(m, vector).sum())(matrix).shape == (4, 4)
symmetric = lx.MatrixLinearOperator(matrix @ matrix.T, lx.positive_semidefinite_tag)
found = lx.linear_solve(symmetric, vector, lx.CG(rtol=1e-6, atol=1e-6)).value
assert jnp.allclose(symmetric.as_matrix() @ found, vector, atol=1e-2)
operator = lx.FunctionLinearOperator(lambda x: 2 * x, jax.ShapeDtypeStruct((4,), jnp.float32), lx.diagonal_tag)
assert jnp.allclose(lx.linear_solve(operator, vector).value, vector / 2)
