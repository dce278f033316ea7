"""Run a corejax program as one operation of PyTorch.

Eagerly it is an `autograd.Function`. Its backward, jvp and vmap are calls of the transformed program, so that
`backward`, `torch.func` and forward mode nest to any order. The Function returns residuals beside the results, so that
a derivative does not compute the program again, and derivatives of derivatives pass through the residuals.

Dynamo cannot trace a Function that defines jvp. Under `torch.compile` and `torch.export` the program is the operator
`corejax::call`, which names the program by a key. Its derivative by `torch.func` would be zero without an error,
because `torch.library` cannot register a forward derivative, and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from corejax.extend import ClosedJaxpr, batch_jaxpr, dtypes, spread_list
from corejax.extend.programs import select_list
from corejax_to_torch.programs import (
    Flags,
    compiled,
    gradients,
    linearised,
    recomputed_gradients,
    residuals_of,
    tangents,
)
from corejax_to_torch.tensors import aval_of, has_derivatives, to_array, to_tensor, torch_dtype

Stage = Callable[[tuple[Any, ...]], ClosedJaxpr]

_stages: dict[str, Stage] = {}  # key -> function from types of arguments to the program


def register(key: str, stage: Stage) -> None:
    """Register the function that stages the program of a key, for `corejax::call`."""
    _stages[key] = stage


def key_of(closed: ClosedJaxpr) -> str:
    """Return the key of a program, the same at every call."""
    key: str | None = closed.memo.get("to_torch.key")
    if key is None:
        first = next((eqn.primitive.name for eqn in closed.eqns), "identity")
        key = closed.memo["to_torch.key"] = f"{first}#program{len(_stages)}"
        register(key, lambda avals: closed)
    return key


def staged(key: str, xs: Sequence[torch.Tensor]) -> ClosedJaxpr:
    """Return the program of a key for the types of tensors."""
    return _stages[key](tuple([aval_of(x, key) for x in xs]))


def run(closed: ClosedJaxpr, xs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Run a program on tensors, without derivatives."""
    # A derivative may have saved tensors of a transformation that has ended since.
    xs = [torch._C._functorch.unwrap_if_dead(x) for x in xs]
    if any(x.device.type == "meta" for x in xs):
        return empty_results(closed, xs)
    return [to_tensor(out, xs) for out in compiled(closed)(*map(to_array, xs))]


def empty_results(closed: ClosedJaxpr, xs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return uninitialised tensors of the results' types."""
    device = xs[0].device if xs else "cpu"
    return [torch.empty(a.shape, dtype=torch_dtype(a, "a kernel"), device=device) for a in closed.out_avals]


# -- eager -------------------------------------------------------------------------------------------------------------


def apply(closed: ClosedJaxpr, xs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Call a program with tensors, in a way that PyTorch can differentiate and batch."""
    if torch._C._functorch.maybe_current_level() is not None or torch.autograd.forward_ad._current_level >= 0:
        # Under vmap alone no derivative is taken, so a primitive without one can still be batched.
        levels = torch._C._functorch.get_interpreter_stack() or []
        batches = all(level.key() == torch._C._functorch.TransformType.Vmap for level in levels)
        forward = torch.autograd.forward_ad._current_level >= 0
        nonzeros = tuple([has_derivatives(x) and (x.requires_grad or forward or not batches) for x in xs])
    elif torch.is_grad_enabled():
        nonzeros = tuple([x.requires_grad for x in xs])
    else:
        return run(closed, xs)
    if not any(nonzeros) and torch._C._functorch.maybe_current_level() is None:
        return run(closed, xs)
    return list(Call.apply(closed, nonzeros, *xs))[: len(closed.out_avals)]


class Call(torch.autograd.Function):
    """A call of a program. The outputs are the results, then residuals."""

    @staticmethod
    def forward(closed: ClosedJaxpr, nonzeros: Flags, *xs: Any) -> Any:
        """Compute the results and residuals."""
        return tuple(run(linearised(closed, nonzeros).known, xs))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, outputs: Any) -> None:
        """Save the arguments and outputs for the derivatives."""
        closed, nonzeros, *xs = inputs
        ctx.closed, ctx.nonzeros, ctx.count = closed, nonzeros, len(xs)
        ctx.save_for_backward(*xs, *outputs)
        ctx.save_for_forward(*xs, *outputs)
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*[y for y in outputs if not has_derivatives(y)])

    @staticmethod
    def _saved(ctx: Any) -> tuple[Any, Any]:
        return ctx.saved_tensors[: ctx.count], ctx.saved_tensors[ctx.count :]

    @staticmethod
    def backward(ctx: Any, *cts_out: Any) -> Any:
        """Pull cotangents back; residuals have cotangents only in a derivative of a derivative."""
        xs, outs = Call._saved(ctx)
        cts = [ct if has_derivatives(y) else None for ct, y in zip(cts_out, outs, strict=True)]
        split = linearised(ctx.closed, ctx.nonzeros)
        count = len(ctx.closed.out_avals)
        if all(ct is None for ct in cts) or not any(ctx.nonzeros):
            return (None, None, *[None] * ctx.count)
        nonzero_cts = [ct for ct in cts if ct is not None]
        if all(ct is None for ct in cts[count:]):
            program = gradients(ctx.closed, ctx.nonzeros, tuple([ct is not None for ct in cts[:count]]))
            cts_in = apply(program, [*residuals_of(split, xs, outs), *nonzero_cts])
        else:
            has_ct = tuple([ct is not None for ct in cts])
            cts_in = apply(recomputed_gradients(split.known, ctx.nonzeros, has_ct), [*xs, *nonzero_cts])
        return (None, None, *spread_list(ctx.nonzeros, cts_in))

    @staticmethod
    def jvp(ctx: Any, _closed: Any, _nonzeros: Any, *ts: Any) -> Any:
        """Push tangents forward to the results and residuals."""
        xs, _ = Call._saved(ctx)
        known = linearised(ctx.closed, ctx.nonzeros).known
        nonzeros = tuple([t is not None and has_derivatives(x) for t, x in zip(ts, xs, strict=True)])
        if not any(nonzeros):
            return tuple([None] * len(known.out_avals))
        residuals = apply_known(known, nonzeros, xs)
        ts_out = apply(tangents(known, nonzeros), [*residuals, *select_list(nonzeros, ts)])
        smooth = [bool(dtypes.is_inexact(a.dtype)) for a in known.out_avals]
        return tuple(spread_list(smooth, ts_out))

    @staticmethod
    def vmap(info: Any, in_dims: Any, closed: ClosedJaxpr, nonzeros: Flags, *xs: Any) -> Any:
        """Call the batched program."""
        known = linearised(closed, nonzeros).known
        batched, _ = batch_jaxpr(known, info.batch_size, list(in_dims[2:]), True)
        outs = tuple(apply(batched, xs))
        return outs, tuple([0] * len(outs))


def apply_known(closed: ClosedJaxpr, nonzeros: Flags, xs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return the residuals of a program for tangents of some arguments."""
    split = linearised(closed, nonzeros)
    return residuals_of(split, xs, apply(split.known, xs))


# -- compiled ----------------------------------------------------------------------------------------------------------


def _call(xs: Sequence[torch.Tensor], key: str) -> list[torch.Tensor]:
    """Call the program of a key."""
    return run(staged(key, xs), xs)


def _fake(xs: Sequence[torch.Tensor], key: str) -> list[torch.Tensor]:
    return empty_results(staged(key, xs), xs)


call: Any = torch.library.custom_op("corejax::call", mutates_args=())(_call)
call.register_fake(_fake)


def _setup(ctx: Any, inputs: Any, output: Any) -> None:
    xs, ctx.key = inputs
    ctx.save_for_backward(*xs)
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, cts: Sequence[Any]) -> Any:
    xs = ctx.saved_tensors
    closed = staged(ctx.key, xs)
    nonzeros = tuple([has_derivatives(x) for x in xs])
    smooth = [bool(dtypes.is_inexact(a.dtype)) for a in closed.out_avals]
    has_ct = tuple([ct is not None and is_smooth for ct, is_smooth in zip(cts, smooth, strict=True)])
    if not any(has_ct) or not any(nonzeros):
        return [None] * len(xs), None
    program = recomputed_gradients(closed, nonzeros, has_ct)
    cts_in: list[Any] = call([*xs, *select_list(has_ct, cts)], key_of(program))
    return spread_list(nonzeros, cts_in), None


call.register_autograd(_backward, setup_context=_setup)


def _vmap(info: Any, in_dims: Any, xs: Sequence[torch.Tensor], key: str) -> Any:
    dims = list(in_dims[0])
    avals = [aval_of(x, key) for x in xs]
    inner = tuple(
        [a if d is None else a.update(shape=a.shape[:d] + a.shape[d + 1 :]) for a, d in zip(avals, dims, strict=True)]
    )
    batched, _ = batch_jaxpr(_stages[key](inner), info.batch_size, dims, True)
    return call(list(xs), key_of(batched)), [0] * len(batched.out_avals)


call.register_vmap(_vmap)


def call_traced(xs: Sequence[torch.Tensor], key: str) -> list[torch.Tensor]:
    """Call the operator with tensors that PyTorch traces.

    Raises:
        NotImplementedError: `torch.func` differentiates the call.
    """
    is_tracked = any(torch._C._functorch.is_gradtrackingtensor(x) for x in xs)
    if is_tracked or torch.autograd.forward_ad._current_level >= 0:
        raise NotImplementedError(
            f"to_torch: {key.partition('#')[0]} is a kernel, and torch.func inside torch.compile would take its "
            "derivative for zero; compile the function that torch.func takes, or use backward()"
        )
    return list(torch.ops.corejax.call(list(xs), key))


# An operator without kernels: PyTorch replaces it by what the function does, which sees the tensors of `torch.func`.
_library = torch.library.Library("corejax", "FRAGMENT")
_library.define("kernel(Tensor[] xs, str key) -> Tensor[]", tags=(torch.Tag.pt2_compliant_tag,))
_library.impl("kernel", call_traced, "CompositeImplicitAutograd")
_library.impl("kernel", call_traced, "FuncTorchBatchedDecomposition")  # vmap does not use the former


def call_compiled(xs: Sequence[torch.Tensor], key: str) -> list[torch.Tensor]:
    """Call the program of a key while PyTorch compiles."""
    return list(torch.ops.corejax.kernel(list(xs), key))
