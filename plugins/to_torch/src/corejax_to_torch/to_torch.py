"""`to_torch`: corejax primitives and functions in PyTorch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd import forward_ad

from corejax.extend import ClosedJaxpr, Primitive, fun_name, stage_closed, tree
from corejax.extend.messages import UnboundAxisError
from corejax_to_torch import composed, kernel, keys, operators
from corejax_to_torch.tensors import aval_of, outside_dynamo
from corejax_xla_backend.hlo import host_function

OLDEST, NEWEST = (2, 13), (2, 14)


class Bridged:
    """A corejax function as programs for the types of its arguments.

    Attributes:
        name: the name of the function.
        key: the key of the function for the operators of PyTorch.
        returns_tensor: whether the function has returned a single array for all types so far.
        structure: the result of the function with indices in place of arrays, for the types that were staged last.
    """

    def __init__(self, fun: Callable[..., Any], name: str) -> None:
        self.name = name
        self.structure: Any = None
        self.returns_tensor = True
        self._fun = fun
        self._staged: dict[Any, tuple[ClosedJaxpr, Any]] = {}
        self._of_tensors: dict[Any, tuple[ClosedJaxpr, Any]] = {}  # a type of a tensor is quicker than one of corejax
        self.key = keys.register(name, self.stage)

    def of_tensors(self, xs: Sequence[torch.Tensor]) -> tuple[ClosedJaxpr, Any]:
        """Return the program and the structure of its result for the types of tensors, memoised.

        Raises:
            TypeError: an argument is not a tensor, or corejax does not have its dtype.
        """
        try:
            signature = tuple([(x.dtype, x.shape, x.layout) for x in xs])
        except AttributeError:  # `aval_of` says what is not a tensor
            signature = ()
        found = self._of_tensors.get(signature)
        if found is None:
            closed = self.stage(tuple([aval_of(x, self.name) for x in xs]))
            found = self._of_tensors[signature] = closed, self.structure
        return found

    def stage(self, avals: tuple[Any, ...]) -> ClosedJaxpr:
        """Return the program for types of arguments, memoised.

        Raises:
            UnboundAxisError: the program has a collective over a named axis.
            NotImplementedError: the program has effects.
        """
        found = self._staged.get(avals)
        if found is None:
            try:
                closed = stage_closed(self._flat, avals)
            except UnboundAxisError as error:
                reason = str(error).partition(";")[0]
                raise UnboundAxisError(
                    f"to_torch: {self.name} has a collective over an axis that it does not bind, and PyTorch does not "
                    f"name axes ({reason}); call torch.distributed's collective around it, or bind the axis inside "
                    "with corejax.vmap(..., axis_name=...)"
                ) from error
            if closed.effects:
                effects = ", ".join(sorted(closed.effects))
                raise NotImplementedError(
                    f"to_torch: {self.name} has effects ({effects}), which PyTorch cannot order; move them out of it"
                )
            found = self._staged[avals] = closed, self.structure
            self.returns_tensor = self.returns_tensor and self.structure == 0
        closed, self.structure = found
        return closed

    def _flat(self, *xs: Any) -> list[Any]:
        outs, out_tree = tree.tree_flatten(self._fun(*xs))
        self.structure = tree.tree_unflatten(out_tree, range(len(outs)))
        return outs


def _filled(structure: Any, outs: Sequence[torch.Tensor]) -> Any:
    """Return a structure with tensors in place of their indices, in code that Dynamo can trace."""
    if isinstance(structure, int):
        return outs[structure]
    if isinstance(structure, dict):
        return {key: _filled(value, outs) for key, value in structure.items()}
    if isinstance(structure, list):
        return [_filled(value, outs) for value in structure]
    return tuple([_filled(value, outs) for value in structure])


def bridge(fun: Primitive | Callable[..., Any], as_kernel: bool, params: dict[str, Any]) -> Callable[..., Any]:
    """Implement `corejax.to_torch`."""
    name = fun.name if isinstance(fun, Primitive) else fun_name(fun)
    _check_version(name)
    bound = functools.partial(fun.bind if isinstance(fun, Primitive) else fun, **params)
    bridged = Bridged(bound, name)
    key = bridged.key
    # Dynamo checks at each call what it reads here, so it reads little: no attributes of modules, no helpers.
    operator = operators.operator if as_kernel else composed.operator
    is_compiling = torch.compiler.is_compiling
    eager = _eager_kernel(bridged) if as_kernel else _eager_composed(bridged)
    _rename(eager, name)
    eager = outside_dynamo(eager)

    def in_torch(*xs: Any) -> Any:
        if not is_compiling():
            return eager(xs)
        outs = operator(xs, key)
        structure = bridged.structure
        return outs[0] if structure == 0 else _filled(structure, outs)

    _rename(in_torch, name)
    in_torch.__doc__ = f"{name} of corejax, as a function of PyTorch."
    in_torch.as_module = functools.partial(_Module, in_torch)  # type: ignore[attr-defined]  # a function too
    return in_torch


def _rename(fun: Any, name: str) -> None:
    """Give a function a name, with which corejax's errors begin, and code of its own.

    Dynamo limits the recompilations of each code object.
    """
    identifier = "".join(c if c.isalnum() else "_" for c in name)
    fun.__code__ = fun.__code__.replace(co_name=identifier)
    fun.__name__ = fun.__qualname__ = identifier


def _eager_composed(bridged: Bridged) -> Callable[[Sequence[Any]], Any]:
    """Return a function of tensors that runs operations of PyTorch."""

    def call(xs: Sequence[Any]) -> Any:
        program, structure = bridged.of_tensors(xs)
        return _filled(structure, composed.apply(program, xs))

    return call


class _SeveralResultsError(Exception):
    """A program does not return a single tensor."""


def _eager_kernel(bridged: Bridged) -> Callable[[Sequence[Any]], Any]:
    """Return a function of tensors that runs the program as a kernel.

    Outside of transformations, tensors become NumPy arrays at once, and jaxlib's dispatcher finds the program: a lookup
    by the tensors' types would take as long as a small program. `Tensor.numpy` refuses tensors that are not on the CPU,
    and those with other reasons to go to `kernel.apply`; its errors are slow, so the usual reasons are checked before.
    """

    def stage(avals: tuple[Any, ...]) -> ClosedJaxpr:
        closed = bridged.stage(avals)
        if not bridged.returns_tensor:
            raise _SeveralResultsError
        return kernel.checked(closed)

    compiled = host_function(stage, bridged.name, torch._C._from_dlpack)
    torch_func_level = torch._C._functorch.maybe_current_level

    def call(xs: Sequence[Any]) -> Any:
        if bridged.returns_tensor and forward_ad._current_level < 0 and torch_func_level() is None:
            try:
                arrays = [x.contiguous().numpy() for x in xs if not x.requires_grad]
                if len(arrays) == len(xs):
                    return compiled(arrays)[0]
            except (AttributeError, RuntimeError, TypeError, _SeveralResultsError):
                pass  # errors of the program itself are raised again below
        program, structure = bridged.of_tensors(xs)
        return _filled(structure, kernel.apply(program, xs))

    return call


class _Module(torch.nn.Module):
    """A function of tensors as a module, for `torch.nn.Sequential`."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        super().__init__()
        self._fun = fun

    def forward(self, *xs: Any) -> Any:
        """Call the function."""
        return self._fun(*xs)


def _check_version(name: str) -> None:
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if not OLDEST <= version <= NEWEST:
        raise ImportError(f"to_torch: {name}: torch {torch.__version__} is not supported; install torch>=2.13,<2.15")
