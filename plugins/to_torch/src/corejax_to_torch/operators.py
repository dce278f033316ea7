"""The operators that `torch.compile` and `torch.export` trace in place of a kernel.

`corejax::call` runs a program, which it names by a key. Its outputs are the results, then residuals if a tensor
requires grad. Its derivative by `torch.func` would be zero without an error, because `torch.library` cannot register a
forward derivative. So Dynamo gets `corejax::kernel`, which has no kernel of its own: PyTorch replaces it by
`call_traced`, which sees the tensors of `torch.func` and refuses them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd import forward_ad

from corejax.extend import ClosedJaxpr, batch_jaxpr
from corejax_to_torch.kernel import empty_results, name_of, pull_back, run
from corejax_to_torch.programs import Flags, linearised
from corejax_to_torch.tensors import aval_of, has_derivatives

Stage = Callable[[tuple[Any, ...]], ClosedJaxpr]

_stages: dict[str, Stage] = {}  # key -> function from types of arguments to the program
_origins: dict[str, tuple[ClosedJaxpr, Flags]] = {}  # key of a program with residuals -> what it linearises


def register(key: str, stage: Stage) -> None:
    """Register the function that stages the program of a key, for `corejax::call`."""
    _stages[key] = stage


def key_of(closed: ClosedJaxpr) -> str:
    """Return the key of a program, the same at every call."""
    key: str | None = closed.memo.get("to_torch.key")
    if key is None:
        key = closed.memo["to_torch.key"] = f"{name_of(closed)}#program{len(_stages)}"
        register(key, lambda avals: closed)
    return key


def staged(key: str, xs: Sequence[torch.Tensor]) -> ClosedJaxpr:
    """Return the program of a key for the types of tensors."""
    name = key.partition("#")[0]
    return _stages[key](tuple([aval_of(x, name) for x in xs]))


def _call(xs: Sequence[torch.Tensor], key: str) -> list[torch.Tensor]:
    """Call the program of a key."""
    return run(staged(key, xs), xs)


def _fake(xs: Sequence[torch.Tensor], key: str) -> list[torch.Tensor]:
    return empty_results(staged(key, xs), xs)


call: Any = torch.library.custom_op("corejax::call", mutates_args=())(_call)
call.register_fake(_fake)


def _setup(ctx: Any, inputs: Any, output: Any) -> None:
    xs, ctx.key = inputs
    ctx.count = len(xs)
    ctx.save_for_backward(*xs, *output)
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, cts: Sequence[Any]) -> Any:
    xs, outs = ctx.saved_tensors[: ctx.count], ctx.saved_tensors[ctx.count :]
    closed, nonzeros = _origins.get(ctx.key) or (staged(ctx.key, xs), tuple([has_derivatives(x) for x in xs]))

    def traced(program: ClosedJaxpr, operands: Sequence[Any]) -> list[torch.Tensor]:
        return list(call(list(operands), key_of(program)))

    return pull_back(traced, closed, nonzeros, xs, outs, cts), None


call.register_autograd(_backward, setup_context=_setup)


def _vmap(info: Any, in_dims: Any, xs: Sequence[torch.Tensor], key: str) -> Any:
    dims = list(in_dims[0])
    avals = [aval_of(x, key) for x in xs]
    inner = tuple(
        [a if d is None else a.update(shape=a.shape[:d] + a.shape[d + 1 :]) for a, d in zip(avals, dims, strict=True)]
    )
    batched, _ = batch_jaxpr(_stages[key](inner), info.batch_size, dims, True)
    return call_traced(list(xs), key_of(batched)), [0] * len(batched.out_avals)


call.register_vmap(_vmap)


def call_traced(xs: Sequence[torch.Tensor], key: str) -> list[torch.Tensor]:
    """Call the operator with tensors that PyTorch traces.

    Raises:
        NotImplementedError: `torch.func` differentiates the call.
    """
    functorch = torch._C._functorch
    if any(functorch.is_gradtrackingtensor(x) for x in xs) or forward_ad._current_level >= 0:
        raise NotImplementedError(
            f"to_torch: {key.partition('#')[0]} is a kernel, and torch.func inside torch.compile would take its "
            "derivative for zero; compile the function that torch.func takes, or use backward()"
        )
    closed = staged(key, xs)
    nonzeros = tuple([x.requires_grad for x in xs])
    if torch.is_grad_enabled() and any(nonzeros) and functorch.maybe_current_level() is None:
        known = linearised(closed, nonzeros).known
        key = key_of(known)
        _origins[key] = closed, nonzeros
    return list(torch.ops.corejax.call(list(xs), key))[: len(closed.out_avals)]


_library = torch.library.Library("corejax", "FRAGMENT")
_library.define("kernel(Tensor[] xs, str key) -> Tensor[]", tags=(torch.Tag.pt2_compliant_tag,))
_library.impl("kernel", call_traced, "CompositeImplicitAutograd")
_library.impl("kernel", call_traced, "FuncTorchBatchedDecomposition")  # vmap does not use the former

# `(xs, key) -> results`: calls the program of a key while PyTorch compiles.
operator: Any = torch.ops.corejax.kernel.default
