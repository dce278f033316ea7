"""`sparsify`: run a function of dense arrays on sparse ones."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.extend import tree
from corejax.extend.programs import Literal
from corejax_sparse import products, structure
from corejax_sparse._base import JAXSparse
from corejax_sparse.bcoo import BCOO
from corejax_sparse.bcsr import BCSR

Rule = Callable[..., Any]


def is_sparse(x: Any) -> bool:
    """Return whether a value is a sparse array."""
    return isinstance(x, JAXSparse)


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """Return a function that applies `f`, written for dense arrays, to sparse arrays among its arguments.

    The function is traced for dense arrays, and each operation is then applied to sparse operands. Operations that
    would make most elements different from 0, such as `cos`, have no rule.

    Args:
        f: a function of pytrees of arrays.
        use_tracer: accepted for compatibility.

    Returns:
        A function with sparse or dense results. It raises NotImplementedError for operations without a rule.
    """

    @functools.wraps(f)
    def sparsified(*args: Any, **params: Any) -> Any:
        leaves, structure_of_args = tree.tree_flatten((args, params), is_leaf=is_sparse)
        leaves = [x.to_bcoo() if isinstance(x, BCSR) else x for x in leaves]
        moving = [k for k, x in enumerate(leaves) if is_sparse(x) or hasattr(x, "dtype")]
        kept: list[Any] = []

        def flat(*values: Any) -> Any:
            filled = list(leaves)
            for k, value in zip(moving, values, strict=True):
                filled[k] = value
            positional, named = tree.tree_unflatten(structure_of_args, filled)
            out = f(*positional, **named)
            kept[:] = [tree.tree_structure(out)]
            return tree.tree_leaves(out)

        values = [leaves[k] for k in moving]
        types = [corejax.ShapeDtypeStruct(x.shape, x.dtype) if is_sparse(x) else x for x in values]
        program = corejax.make_jaxpr(flat)(*types)
        return tree.tree_unflatten(kept[0], evaluate(program, values))

    return sparsified


def evaluate(program: Any, values: Sequence[Any]) -> list[Any]:
    """Run a program with its constants on values, some of them sparse."""
    jaxpr = program.jaxpr
    env: dict[Any, Any] = {}

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else env[atom]

    env.update(zip((*jaxpr.constvars, *jaxpr.invars), (*program.consts, *values), strict=True))
    for eqn in jaxpr.eqns:
        operands = [read(atom) for atom in eqn.invars]
        if any(map(is_sparse, operands)):
            rule = RULES.get(eqn.primitive.name)
            if rule is None:
                shown = ", ".join(repr(x) if is_sparse(x) else jnp.asarray(x).aval.str_short() for x in operands)
                raise NotImplementedError(
                    f"sparsify: {eqn.primitive.name} has no rule for sparse arrays, got ({shown}); "
                    "apply it to todense()"
                )
            outs = rule(*operands, **eqn.params)
        else:
            outs = eqn.primitive.bind(*operands, **eqn.params)
        several = eqn.primitive.multiple_results or isinstance(outs, list)
        env.update(zip(eqn.outvars, outs if several else [outs], strict=True))
    return [read(atom) for atom in jaxpr.outvars]


# -- rules ---------------------------------------------------------------------------------------------------------


def _linear(name: str) -> Rule:
    """Return the rule of a function that maps sums to sums, and 0 to 0."""
    primitive = getattr(lax, f"{name}_p")
    return lambda mat, **params: mat.with_parts(primitive.bind(mat.data, **params), mat.indices)


def _zero_preserving(name: str) -> Rule:
    """Return the rule of a function that maps 0 to 0, applied once for each place."""
    primitive = getattr(lax, f"{name}_p")

    def rule(mat: Any, **params: Any) -> Any:
        mat = mat if mat.unique_indices else mat.sum_duplicates(mat.nse, remove_zeros=False)
        return mat.with_parts(primitive.bind(mat.data, **params), mat.indices)

    return rule


def _integer_pow(mat: Any, *, y: int) -> Any:
    if y < 1:
        raise NotImplementedError(f"sparsify: a sparse array to the power {y}, by which 0 is not 0")
    return _zero_preserving("integer_pow")(mat, y=y)


def _mul(x: Any, y: Any, **params: Any) -> Any:
    return x * y if isinstance(x, BCOO) else y * x


def _sub(x: Any, y: Any) -> Any:
    return x + (-y) if isinstance(x, BCOO) else (-y) + x


def _div(x: Any, y: Any) -> Any:
    if not isinstance(x, BCOO):
        raise NotImplementedError("sparsify: division by a sparse array, with 0 for absent elements")
    return x / y


def _transpose(mat: Any, *, permutation: Any) -> Any:
    return structure.transpose(mat, permutation=permutation)


def _reshape(mat: Any, *, new_sizes: Any, dimensions: Any = None, **params: Any) -> Any:
    return structure.reshape(mat, new_sizes=new_sizes, dimensions=dimensions)


def _concatenate(*mats: Any, dimension: int) -> Any:
    return structure.concatenate(mats, dimension=dimension)


def _broadcast(mat: Any, *, shape: Any, broadcast_dimensions: Any, **params: Any) -> Any:
    return structure.broadcast_in_dim(mat, shape=shape, broadcast_dimensions=broadcast_dimensions)


def _reduce_sum(mat: Any, *, axes: Any, **params: Any) -> Any:
    return mat.sum(tuple(axes)) if axes else mat


def _dot_general(x: Any, y: Any, *, dimension_numbers: Any, **params: Any) -> Any:
    known = {k: v for k, v in params.items() if k in ("precision", "preferred_element_type")}
    return products.dot_general(x, y, dimension_numbers=dimension_numbers, **known)


def _dynamic_slice(mat: Any, *starts: Any, slice_sizes: Any) -> Any:
    return structure.dynamic_slice(mat, starts, slice_sizes)


def _call(name: str) -> Rule:
    """Return the rule of a primitive that applies the program in the param `name`."""
    return lambda *operands, **params: evaluate(params[name], operands)


def _while(*operands: Any, cond_jaxpr: Any, cond_nconsts: int, body_jaxpr: Any, body_nconsts: int) -> Any:
    of_cond, rest = operands[:cond_nconsts], operands[cond_nconsts:]
    of_body, carry = rest[:body_nconsts], list(rest[body_nconsts:])
    return lax.while_loop(
        lambda carry: evaluate(cond_jaxpr, [*of_cond, *carry])[0],
        lambda carry: evaluate(body_jaxpr, [*of_body, *carry]),
        carry,
    )


def _scan(
    *operands: Any,
    jaxpr: Any,
    length: int,
    reverse: bool,
    num_consts: int,
    num_carry: int,
    unroll: Any = 1,
    **params: Any,
) -> Any:
    consts, carry = operands[:num_consts], list(operands[num_consts : num_consts + num_carry])
    xs = list(operands[num_consts + num_carry :])
    for x in xs:
        if isinstance(x, BCOO) and not x.n_batch:
            raise NotImplementedError(f"sparsify: scan over {x!r}, whose first dimension is not a batch dimension")

    def body(carry: Any, xs: Any) -> Any:
        outs = evaluate(jaxpr, [*consts, *carry, *xs])
        return outs[:num_carry], outs[num_carry:]

    carry, ys = lax.scan(body, carry, xs, length, reverse, unroll)
    return [*carry, *ys]


def _cond(index: Any, *operands: Any, branches: Any, **params: Any) -> Any:
    apply = [lambda *xs, b=b: evaluate(b, xs) for b in branches]
    return lax.switch(index, apply, *operands)


RULES: dict[str, Rule] = {
    **{name: _linear(name) for name in ("neg", "convert_element_type", "real", "imag", "conj", "copy")
       if hasattr(lax, f"{name}_p")},
    **{name: _zero_preserving(name) for name in (
        "abs", "asin", "asinh", "atan", "atanh", "cbrt", "ceil", "expm1", "floor", "log1p", "round", "sign", "sin",
        "sinh", "sqrt", "square", "tan", "tanh")},
    "add": lambda x, y: x + y if isinstance(x, BCOO) else y + x,
    "broadcast_in_dim": _broadcast,
    "concatenate": _concatenate,
    "cond": _cond,
    "custom_jvp_call": _call("call_jaxpr"),
    "custom_vjp_call": _call("call_jaxpr"),
    "div": _div,
    "dot_general": _dot_general,
    "dynamic_slice": _dynamic_slice,
    "integer_pow": _integer_pow,
    "mul": _mul,
    "reduce_sum": _reduce_sum,
    "remat2": _call("jaxpr"),
    "reshape": _reshape,
    "rev": structure.rev,
    "scan": _scan,
    "slice": structure.slice_,
    "squeeze": structure.squeeze,
    "sub": _sub,
    "transpose": _transpose,
    "while": _while,
    "xla_call": _call("call_jaxpr"),
}  # fmt: skip
