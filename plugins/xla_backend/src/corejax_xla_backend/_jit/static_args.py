"""Static arguments of `jit`: which they are, and how a call is split into what is traced and what is not."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from typing import Any, NamedTuple

from corejax.extend import DebugInfo, Exact, Tracer, exact, fun_name, tree
from corejax_xla_backend._jit.named_arguments import named_arguments


def _instead(value: Any) -> str:
    """What to pass in place of a value that has no hash."""
    if isinstance(value, Tracer):
        return "it is an argument of the transformation around this call: give it the value from outside, or "
    if isinstance(value, list):
        return "pass a tuple instead of a list, or "
    if isinstance(value, tuple):
        return "what is in it has to be, too, or "
    if is_dataclass(value):
        return "make its class a @dataclass(frozen=True), or "
    return "pass a tuple of what is in it, or " if isinstance(value, dict | set) else ""


class StaticKey(NamedTuple):
    """The static part of a call: hashable, and unequal for equal values of unequal types (1 and 1.0) or signs of zeros.

    Attributes:
        count: number of positional arguments of the whole call.
        positional: position, type and value of each that is static, as `exact` gives it.
        named: name, type and value of each static keyword argument, likewise.
    """

    count: int
    positional: tuple[tuple[int, type, Any], ...]
    named: tuple[tuple[str, type, Any], ...]

    def whole_call(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The call again, from its traced arguments."""
        fixed = {i: _given(value) for i, _, value in self.positional}
        traced = iter(args)
        positional = tuple(fixed[i] if i in fixed else next(traced) for i in range(self.count))
        return positional, {**kwargs, **{name: _given(value) for name, _, value in self.named}}

    def traced_leaves(self, in_tree: Any) -> tuple[Any, tuple[int, ...]]:
        """Structure of the whole call, a static argument being one leaf, and the indices of the traced leaves."""
        marked = StaticKey(
            self.count,
            tuple((i, kind, _STATIC) for i, kind, _ in self.positional),
            tuple((name, kind, _STATIC) for name, kind, _ in self.named),
        )
        leaves, whole = tree.tree_flatten(marked.whole_call(*tree.tree_unflatten(in_tree, range(in_tree.num_leaves))))
        return whole, tuple(i for i, leaf in enumerate(leaves) if leaf is not _STATIC)


_STATIC = object()


def _given(value: Any) -> Any:
    return value.value if type(value) is Exact else value


class StaticArguments:
    """The static arguments of one function, by position and by name.

    Attributes:
        fun: the function.
        numbers: positions, not negative.
        names: names.

    Raises:
        TypeError, ValueError: the function has no such parameter.
    """

    __slots__ = ("fun", "names", "numbers")

    def __init__(self, fun: Callable[..., Any], numbers: Any, names: Any) -> None:
        self.fun = fun
        self.numbers, self.names = named_arguments(fun, "static", numbers, names)

    def split(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, StaticKey | None]:
        """Positional and keyword arguments that are traced, and the static ones (None where there are none).

        Raises:
            TypeError: a static argument is not hashable.
        """
        if not self.numbers and not self.names:
            return args, kwargs, None
        positional = tuple((i, type(args[i]), exact(args[i])) for i in self.numbers if i < len(args))
        named = tuple((name, type(kwargs[name]), exact(kwargs[name])) for name in self.names if name in kwargs)
        for where, _, value in (*positional, *named):
            self._check_hashable(where, value)
        traced = tuple(x for i, x in enumerate(args) if i not in self.numbers)
        rest = {name: x for name, x in kwargs.items() if name not in self.names}
        return traced, rest, StaticKey(len(args), positional, named)

    def closed(self, static: StaticKey | None) -> Callable[..., Any]:
        """The function of the traced arguments."""
        fun = self.fun
        if static is None:
            return fun

        @functools.wraps(fun, assigned=("__module__", "__name__", "__qualname__"), updated=())
        def of_traced(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = static.whole_call(args, kwargs)
            return fun(*args, **kwargs)

        return of_traced

    def debug_info(self, in_tree: Any, static: StaticKey | None) -> DebugInfo:
        """What is traced, for messages: arguments go by their names in the whole call."""
        if static is None:
            return DebugInfo(self.fun, "jit", in_tree)
        return DebugInfo(self.fun, "jit", *static.traced_leaves(in_tree))

    def _check_hashable(self, where: int | str, value: Any) -> None:
        try:
            hash(value)
        except TypeError:
            value = _given(value)
            kind = "a traced value" if isinstance(value, Tracer) else f"of type {type(value).__name__}"
            raise TypeError(
                f"jit of {fun_name(self.fun)}: static argument {self.name_of(where)} has to be hashable, "
                f"got {value!r} ({kind}); {_instead(value)}do not mark the argument as static"
            ) from None

    def name_of(self, where: int | str) -> str:
        """A static argument's name, quoted, or its number where the signature shows none."""
        if isinstance(where, str):
            return repr(where)
        try:
            return repr(list(inspect.signature(self.fun).parameters)[where])
        except (TypeError, ValueError, IndexError):
            return f"number {where}"
