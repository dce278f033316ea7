"""The function that is being transformed, for messages; its line and argument names are computed on demand."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    from corejax.tree._treedef import PyTreeDef

Function: TypeAlias = Callable[..., Any]
F = TypeVar("F", bound=Function)


class DebugInfo:
    """The function that a trace runs, for messages.

    Attributes:
        fun: the user's function.
        transform: the transformation's name as users write it ("jit", "grad", "vmap").
        in_tree: the pytree structure of `(args, kwargs)`, or None; the traced arguments are its leaves.
        traced: indices of the leaves that are traced, in order; None for all.
    """

    __slots__ = ("fun", "in_tree", "traced", "transform")

    def __init__(
        self, fun: Function, transform: str, in_tree: PyTreeDef | None = None, traced: Sequence[int] | None = None
    ) -> None:
        self.fun = fun
        self.transform = transform
        self.in_tree = in_tree
        self.traced = traced

    def without_function(self) -> DebugInfo:
        """Return a copy with a stand-in for the function: same name, line and parameters, but an empty closure.

        Programs outlive their traces and keep their debug info, which must not keep the function's arrays alive.
        """
        fun = self.fun
        if type(fun) is not types.FunctionType:
            return self
        cells = tuple(types.CellType() for _ in fun.__code__.co_freevars)
        stand_in = types.FunctionType(fun.__code__, {}, fun.__name__, fun.__defaults__, cells)
        stand_in.__kwdefaults__, stand_in.__module__ = fun.__kwdefaults__, fun.__module__
        stand_in.__qualname__ = fun.__qualname__
        for name in {"__signature__", "__wrapped__"} & vars(fun).keys():
            stand_in.__dict__[name] = vars(fun)[name]
        return DebugInfo(stand_in, self.transform, self.in_tree, self.traced)

    @property
    def name(self) -> str:
        """The name of the function."""
        return fun_name(self.fun)

    @property
    def location(self) -> str:
        """The `file:line` of the function, or an empty string."""
        code = getattr(_unwrapped(self.fun), "__code__", None)
        return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""

    def description(self) -> str:
        """Return the phrase `tracing the function f at file.py:3 for jit`."""
        where = f" at {self.location}" if self.location else ""
        return f"tracing the function {self.name}{where} for {self.transform}"

    def arg_names(self) -> list[str]:
        """Return a name for each traced argument: `x`, `params['w']`, `args[0]`."""
        from corejax.tree._paths import leaf_names  # only now, because it imports optree

        if self.in_tree is None:
            return []
        args_tree, kwargs_tree = self.in_tree.children()
        args = args_tree.children()
        kwargs = dict(zip((kwargs_tree.node_data() or (dict, ()))[1], kwargs_tree.children(), strict=True))
        out: list[str] = []
        for arg, base in zip(args, _positional_names(self.fun, args, kwargs), strict=True):
            out.extend(leaf_names(arg, base))
        for key in sorted(kwargs):
            out.extend(leaf_names(kwargs[key], key))
        return out if self.traced is None else [out[i] for i in self.traced]


Debug: TypeAlias = DebugInfo | None


def _positional_names(fun: Function, args: Sequence[object], kwargs: Mapping[str, object]) -> list[str]:
    """Return the name of the parameter for each positional argument: `x`, or `rest[0]` if `*rest` takes it."""
    unknown = [f"args[{i}]" for i in range(len(args))]
    try:
        signature = inspect.signature(fun)
        signature.bind_partial(*args, **kwargs)
    except (TypeError, ValueError):
        return unknown
    names: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            names.extend(f"{parameter.name}[{i}]" for i in range(len(args) - len(names)))
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
    return names[: len(args)]


def _unwrapped(fun: object) -> Any:
    for _ in range(_LAYERS):
        if isinstance(fun, functools.partial):
            fun = fun.func
        elif hasattr(fun, "__wrapped__"):
            fun = fun.__wrapped__
        else:
            break
    return fun


_LAYERS = 1000  # a bound for objects that have every attribute, including `__wrapped__`


def fun_name(fun: object) -> str:
    """Return a function's name for messages and for `name` parameters."""
    fun = _unwrapped(fun)
    name = getattr(fun, "__name__", None)
    return name if name and isinstance(name, str) else type(fun).__name__


_NAMES = ("__module__", "__name__", "__qualname__")


def named_as(fun: Any, assigned: Sequence[str] = _NAMES, updated: Sequence[str] = ("__dict__",)) -> Callable[[F], F]:
    """Return a decorator that gives a function the names of another callable, as `functools.wraps` does.

    A callable object may have a `__name__` that is not a string; such names are not copied.
    """
    copied = [n for n in assigned if n not in _NAMES or isinstance(getattr(fun, n, None), str)]
    return functools.wraps(fun, assigned=copied, updated=updated)  # type: ignore[return-value]  # a decorator
