"""`corejax_call`: the JAX primitive that calls a corejax program.

Each JAX rule is a corejax transformation of the whole program: the JVP rule calls the program's linearisation, the
transpose rule its transpose, the batching rule its batched form. Each of these is a call of the same primitive, so that
derivatives of every order and nested batches need no further rules. Transformed programs are memoised on the program,
so that equal calls have equal parameters and JAX compiles them once. No corejax tracer ever holds a JAX tracer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching

from corejax.extend import (
    ClosedJaxpr,
    batch_jaxpr,
    jvp_jaxpr,
    memoised,
    merge_lists,
    partial_eval_jaxpr,
    spread_list,
    transpose_jaxpr,
)
from corejax.extend.programs import select_list

corejax_call_p: Any = Primitive("corejax_call")  # jax does not annotate its methods
corejax_call_p.multiple_results = True


class Program:
    """A corejax program as a parameter of a JAX equation: compared by identity, printed in one line."""

    def __init__(self, closed: ClosedJaxpr) -> None:
        self.closed = closed

    @property
    def name(self) -> str:
        """The name of the first primitive, as an identifier."""
        first = next((eqn.primitive.name for eqn in self.closed.eqns), "identity")
        return "corejax_" + "".join(c if c.isalnum() else "_" for c in first)

    def __repr__(self) -> str:
        names = [eqn.primitive.name for eqn in self.closed.eqns]
        return f"<{' '.join(names[:4])}{' ...' if len(names) > 4 else ''}>"


def program_of(closed: ClosedJaxpr) -> Program:
    """Return the parameter for a program: the same object at every call."""
    program: Program | None = closed.memo.get("to_jax")
    if program is None:
        program = closed.memo["to_jax"] = Program(closed)
    return program


def call(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """Call a program with JAX arrays or tracers.

    Inside `jax.shard_map`, operands vary over some of the mesh's axes. All operands of a program are made to vary over
    the same axes, because it is not known on which operands a result depends.
    """
    varying: frozenset[Any] = frozenset().union(*map(_varying_axes, args))
    if varying:
        missing = [tuple(varying - _varying_axes(x)) for x in args]
        args = [jax.lax.pcast(x, axes, to="varying") if axes else x for x, axes in zip(args, missing, strict=True)]
    outs: list[Any] = corejax_call_p.bind(*args, program=program_of(closed))
    return outs


def _varying_axes(x: Any) -> frozenset[Any]:
    """Return the axes of `jax.shard_map` over which a value varies."""
    axes: frozenset[Any] = jax.typeof(x).manual_axis_type.varying
    return axes


def _abstract_eval(*avals: Any, program: Program) -> list[Any]:
    outs = [jax.core.ShapedArray(a.shape, a.dtype) for a in program.closed.out_avals]
    like = next((a for a in avals if a.manual_axis_type.varying), None)
    if like is None:
        return outs
    return [
        like.update(
            shape=out.shape,
            dtype=out.dtype,
            weak_type=False,
            sharding=like.sharding.update(spec=_unsplit(out.ndim)),
        )
        for out in outs
    ]


def _unsplit(ndim: int) -> Any:
    return jax.sharding.PartitionSpec(*[None] * ndim)  # type: ignore[no-untyped-call]  # jax does not annotate it


def _impl(*args: Any, program: Program) -> list[Any]:
    jitted = program.closed.memo.get("to_jax.jitted")
    if jitted is None:
        jitted = program.closed.memo["to_jax.jitted"] = jax.jit(lambda *xs: corejax_call_p.bind(*xs, program=program))
    outs: list[Any] = jitted(*args)
    return outs


def linearised(closed: ClosedJaxpr, nonzeros: Sequence[bool]) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool]]:
    """Return the linearisation of a program in two parts, memoised.

    The tangents have a separate program, because JAX's partial evaluation could not split a call that computes primal
    results and tangents together.

    Args:
        closed: a program `a -> b`.
        nonzeros: whether each argument has a tangent.

    Returns:
        `a -> (b, res)`, `(res, nonzero T a) -> nonzero T b`, and whether each result has a tangent.
    """
    nonzeros = tuple(nonzeros)

    def make() -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool]]:
        both, nonzeros_out = jvp_jaxpr(closed, nonzeros)
        unknown = [False] * len(nonzeros) + [True] * sum(nonzeros)
        unknown_out = [False] * len(nonzeros_out) + [True] * sum(nonzeros_out)
        known, linear, *_ = partial_eval_jaxpr(both, unknown, unknown_out)
        return known, linear, nonzeros_out

    return memoised(closed, ("to_jax.linearised", nonzeros), make)


def _zero(x: Any) -> Any:
    return ad.Zero(jax.typeof(x).to_tangent_aval())


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, program: Program) -> tuple[list[Any], list[Any]]:
    nonzeros = [type(t) is not ad.Zero and jax.typeof(t).dtype != jax.dtypes.float0 for t in tangents]
    if not any(nonzeros):
        outs = call(program.closed, primals)
        return outs, [_zero(x) for x in outs]
    known, linear, nonzeros_out = linearised(program.closed, nonzeros)
    results = call(known, primals)
    outs, residuals = results[: len(nonzeros_out)], results[len(nonzeros_out) :]
    pushed = call(linear, [*residuals, *select_list(nonzeros, tangents)]) if any(nonzeros_out) else []
    tangents_out = spread_list(nonzeros_out, pushed)
    return outs, [_zero(x) if t is None else t for x, t in zip(outs, tangents_out, strict=True)]


def _is_undefined(x: Any) -> bool:
    return bool(ad.is_undefined_primal(x))  # type: ignore[no-untyped-call]  # jax does not annotate it


def _transpose(cotangents: Sequence[Any], *args: Any, program: Program) -> list[Any]:
    linear = [_is_undefined(x) for x in args]
    nonzeros = [type(ct) is not ad.Zero for ct in cotangents]
    transposed, nonzeros_in = transpose_jaxpr(program.closed, linear, nonzeros)
    residuals = [x for x in args if not _is_undefined(x)]
    cts_in = spread_list(nonzeros_in, call(transposed, [*residuals, *select_list(nonzeros, cotangents)]))
    operands = select_list(linear, args)
    instantiated = [ad.Zero(x.aval) if ct is None else ct for x, ct in zip(operands, cts_in, strict=True)]
    return merge_lists(linear, [None] * len(residuals), instantiated)


def _batch(args: Sequence[Any], dims: Sequence[int | None], *, program: Program) -> tuple[list[Any], list[int | None]]:
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    batched, dims_out = batch_jaxpr(program.closed, size, dims)
    return call(batched, args), dims_out


corejax_call_p.def_abstract_eval(_abstract_eval)
corejax_call_p.def_impl(_impl)
ad.primitive_jvps[corejax_call_p] = _jvp
ad.primitive_transposes[corejax_call_p] = _transpose
batching.primitive_batchers[corejax_call_p] = _batch
