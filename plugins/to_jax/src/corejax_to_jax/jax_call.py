"""`jax.call`: the corejax primitive that calls a JAX program.

Each rule is a JAX transformation of the whole program, as each rule of `corejax_call` is a corejax transformation.
jax is imported inside the rules, when a program exists, so that loading the plugin does not import jax.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import (
    Primitive,
    ShapedArray,
    abstract_eval_rules,
    dtypes,
    host_value,
    impl_rules,
    is_undef_primal,
    jvp_rules,
    merge_lists,
    partition_list,
    transpose_rules,
    vmap_rules,
    xla_translations,
)
from corejax.extend.programs import select_list

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext

jax_call_p = Primitive("jax.call", multiple_results=True, doc="Call a function of JAX. Params: program.")


class JaxProgram:
    """A function of JAX traced for types of arguments. Transformed programs are memoised on the program.

    Attributes:
        fun: the function of the arguments, which returns a list.
        jitted: the function compiled by JAX.
        in_avals, out_avals: corejax types of the arguments and results.
    """

    def __init__(self, fun: Callable[..., Sequence[Any]], in_avals: Sequence[ShapedArray]) -> None:
        import jax
        from jax.extend.core import jaxpr_as_fun

        with _widths(in_avals):
            self._closed = jax.make_jaxpr(fun)(*map(_struct, in_avals))
        self.fun = jaxpr_as_fun(self._closed)
        self.jitted = jax.jit(self.fun, keep_unused=True)
        self.in_avals = list(in_avals)
        self.out_avals = [ShapedArray(tuple(a.shape), np.dtype(a.dtype)) for a in self._closed.out_avals]
        self.effects = self._closed.effects
        self._memo: dict[Any, JaxProgram] = {}

    def transformed(
        self, key: tuple[Any, ...], fun: Callable[..., Sequence[Any]], in_avals: Sequence[ShapedArray]
    ) -> JaxProgram:
        """Return the program of a transformed function, the same object for the same key."""
        program = self._memo.get(key)
        if program is None:
            program = self._memo[key] = JaxProgram(fun, in_avals)
        return program

    def stablehlo(self, platform: str) -> str:
        """Return the program as JAX lowers it for a platform.

        Raises:
            NotImplementedError: the program calls back into Python, which only JAX's own executables can do.
        """
        with _widths(self.in_avals):
            traced = self.jitted.trace(*map(_struct, self.in_avals))
            text = str(traced.lower(lowering_platforms=(platform,)).compiler_ir())
        if re.search(r"xla(_ffi)?_python_\w+_callback", text):
            raise NotImplementedError(
                f"from_jax: {self!r} calls back into Python, which only JAX's own executables can do; use "
                "corejax.pure_callback around it"
            )
        return text

    def __repr__(self) -> str:
        names = [eqn.primitive.name for eqn in self._closed.eqns]
        return f"<jax: {' '.join(names[:4])}{' ...' if len(names) > 4 else ''}>"


def _widths(avals: Sequence[ShapedArray]) -> AbstractContextManager[Any]:
    """Return a context in which JAX does not narrow 64-bit arguments."""
    import jax

    wide = any(a.dtype.itemsize == (16 if dtypes.is_complex(a.dtype) else 8) for a in avals)
    return jax.enable_x64(True) if wide else nullcontext()


def _struct(aval: ShapedArray) -> Any:
    import jax

    return jax.ShapeDtypeStruct(aval.shape, aval.dtype)  # type: ignore[no-untyped-call]  # jax does not annotate it


@abstract_eval_rules.register(jax_call_p)
def _abstract_eval(*avals: ShapedArray, program: JaxProgram) -> list[ShapedArray]:
    if [(a.shape, a.dtype) for a in avals] != [(a.shape, a.dtype) for a in program.in_avals]:
        given, traced = (", ".join(a.str_short() for a in types) for types in (avals, program.in_avals))
        raise TypeError(f"jax.call: the operands are {given}; the program is traced for {traced}: trace it again")
    return program.out_avals


@impl_rules.register(jax_call_p)
def _impl(*args: Any, program: JaxProgram) -> list[Any]:
    with _widths(program.in_avals):
        return [np.asarray(y) for y in program.jitted(*map(host_value, args))]


@jvp_rules.register(jax_call_p, symbolic_zeros=True)
def _jvp(primals: Sequence[Any], tangents: Sequence[Any], program: JaxProgram) -> tuple[list[Any], list[Any]]:
    import jax

    outs = jax_call_p.bind(*primals, program=program)
    smooth = [dtypes.is_inexact(a.dtype) for a in program.out_avals]
    nonzeros = tuple(t is not None for t in tangents)
    if not any(smooth) or not any(nonzeros):
        return outs, [None] * len(outs)
    count = len(primals)

    def tangent(*args: Any) -> list[Any]:
        xs, given = args[:count], iter(args[count:])
        directions = [
            next(given) if nonzero else np.zeros(x.shape, x.dtype if dtypes.is_inexact(x.dtype) else jax.dtypes.float0)
            for x, nonzero in zip(xs, nonzeros, strict=True)
        ]
        tangents_out = jax.jvp(lambda *ys: program.fun(*ys), tuple(xs), tuple(directions))[1]
        return select_list(smooth, tangents_out)

    in_avals = [*program.in_avals, *select_list(nonzeros, program.in_avals)]
    linear = program.transformed(("tangent", nonzeros), tangent, in_avals)
    tangents_out = iter(jax_call_p.bind(*primals, *select_list(nonzeros, tangents), program=linear))
    return outs, [next(tangents_out) if is_smooth else None for is_smooth in smooth]


@transpose_rules.register(jax_call_p)
def _transpose(cts: Sequence[Any], *args: Any, program: JaxProgram) -> list[Any]:
    import jax

    linear = tuple(is_undef_primal(x) for x in args)
    residual_avals, linear_avals = partition_list(linear, program.in_avals)

    def pullback(*operands: Any) -> Any:
        residuals, cotangents = operands[: len(residual_avals)], operands[len(residual_avals) :]

        def forward(*tangents: Any) -> list[Any]:
            outs: list[Any] = program.fun(*merge_lists(linear, residuals, tangents))
            return outs

        return list(jax.linear_transpose(forward, *map(_struct, linear_avals))(list(cotangents)))

    in_avals = [*residual_avals, *program.out_avals]
    transposed = program.transformed(("transpose", linear), pullback, in_avals)
    residuals = [x for x in args if not is_undef_primal(x)]
    cts_in = jax_call_p.bind(*residuals, *cts, program=transposed)
    return merge_lists(linear, [None] * len(residuals), cts_in)


@vmap_rules.register(jax_call_p)
def _vmap(size: int, vals: Sequence[Any], dims: Sequence[int | None], program: JaxProgram) -> Any:
    import jax

    def batched(*args: Any) -> Any:
        return jax.vmap(lambda *xs: program.fun(*xs), in_axes=tuple(dims), axis_size=size)(*args)

    avals = [ShapedArray(x.shape, x.dtype) for x in vals]
    batch = program.transformed(("vmap", size, tuple(dims)), batched, avals)
    return jax_call_p.bind(*vals, program=batch), [0] * len(batch.out_avals)


@xla_translations.register(jax_call_p)
def _translation(
    ctx: TranslationContext, in_avals: Sequence[ShapedArray], in_vals: Sequence[Any], program: JaxProgram
) -> list[Any]:
    from corejax_xla_backend.hlo import splice  # imported late: jaxlib loads when the first program is lowered

    return splice(ctx, program, lambda: program.stablehlo(ctx.platform), in_vals, program.out_avals)
