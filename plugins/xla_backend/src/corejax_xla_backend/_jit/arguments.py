"""Static and donated arguments of `jit`: the arguments that its options name, by position or by keyword."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import is_dataclass
from typing import Any, NamedTuple

from corejax.extend import DebugInfo, Tracer, fun_name, tree
from corejax.extend.messages import Exact, exact


class NamedArguments(NamedTuple):
    """Positions (not negative) and keyword names of some arguments; each set is completed from the other."""

    numbers: tuple[int, ...]
    names: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.numbers or self.names)

    def select(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Return the named arguments of a call."""
        positional = [args[i] for i in self.numbers if i < len(args)]
        return positional + [kwargs[name] for name in self.names if name in kwargs] if kwargs else positional

    def leaf_flags(self, static_numbers: tuple[int, ...], in_tree: Any) -> tuple[bool, ...]:
        """Return whether each leaf of the traced `(args, kwargs)` belongs to a named argument; () if none is named."""
        if not self:
            return ()
        args, kwargs = tree.tree_unflatten(in_tree, range(in_tree.num_leaves))
        numbers = [i for i in range(len(args) + len(static_numbers)) if i not in static_numbers]
        selected = [arg for i, arg in zip(numbers, args, strict=False) if i in self.numbers]
        selected += [kwargs[name] for name in self.names if name in kwargs]
        leaves = set(tree.tree_leaves(selected))
        return tuple(i in leaves for i in range(in_tree.num_leaves))


def named_arguments(fun: Any, option: str, numbers: Any, names: Any) -> NamedArguments:
    """Return the arguments that a pair of options such as `static_argnums` and `static_argnames` names.

    Args:
        fun: the function.
        option: "static" or "donate".
        numbers: a position or several; negative positions count from the last positional parameter.
        names: a keyword or several.

    Raises:
        TypeError: a number is not an integer, or a name is not a string.
        ValueError: the function has no such parameter.
    """
    numbers = _integers(fun, f"{option}_argnums", numbers)
    names = _strings(fun, f"{option}_argnames", names)
    if not numbers and not names:
        return NamedArguments((), ())
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return NamedArguments(numbers, names)
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    _check_parameters(fun, option, parameters, len(positional), numbers, names)
    numbers = tuple(i % len(positional) if i < 0 else i for i in numbers)
    both = {p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD}
    numbers_of_names = {positional.index(name) for name in names if name in both}
    names_of_numbers = {positional[i] for i in numbers if i < len(positional) and positional[i] in both}
    return NamedArguments(
        tuple(sorted({*numbers, *numbers_of_names})),
        tuple(sorted({*names, *names_of_numbers})),
    )


def check_disjoint(fun: Any, static: Any, donated: NamedArguments) -> None:
    """Raise ValueError if an argument is both static and donated."""
    both = [*(set(static.numbers) & set(donated.numbers)), *(set(static.names) & set(donated.names))]
    if both:
        listed = ", ".join(repr(x) for x in sorted(both, key=str))
        raise ValueError(
            f"jit of {fun_name(fun)}: arguments {listed} are static and donated; a static argument has no buffer to "
            "donate"
        )


def _integers(fun: Any, option: str, value: Any) -> tuple[int, ...]:
    """Return the positions that an `argnums` option names; raise TypeError if one is not an integer."""
    if value is None:
        return ()
    try:
        numbers = value if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
        return tuple(operator.index(i) for i in numbers)
    except TypeError:
        raise TypeError(
            f"jit of {fun_name(fun)}: {option} must be a position or a sequence of positions, such as 0 or (0, 2), "
            f"got {value!r}"
        ) from None


def _strings(fun: Any, option: str, value: Any) -> tuple[str, ...]:
    """Return the names that an `argnames` option lists; raise TypeError if one is not a string."""
    if value is None:
        return ()
    names = (value,) if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(
            f"jit of {fun_name(fun)}: {option} must be a name or a sequence of names, such as 'n' or ('n', 'm'), "
            f"got {value!r}"
        )
    return names


def _check_parameters(
    fun: Callable[..., Any],
    option: str,
    parameters: Sequence[inspect.Parameter],
    count: int,
    numbers: Iterable[int],
    names: Iterable[str],
) -> None:
    """Raise ValueError if the function has no parameter of one of the numbers or names."""
    has_varargs = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    any_keyword = any(p.kind is p.VAR_KEYWORD for p in parameters)
    keywords = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    for i in numbers:
        if not (-count <= i and (i < count or has_varargs)):
            raise ValueError(
                f"jit of {fun_name(fun)}: {option}_argnums has {i!r}, but the function takes {count} positional "
                "arguments"
            )
    by_position = {p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL)}
    for name in names:
        if name in by_position:
            raise ValueError(
                f"jit of {fun_name(fun)}: {option}_argnames has {name!r}, which is positional-only; put its position "
                f"in {option}_argnums instead"
            )
        if name not in keywords and not any_keyword:
            raise ValueError(
                f"jit of {fun_name(fun)}: {option}_argnames has {name!r}, but the function has no such parameter"
            )


class StaticKey(NamedTuple):
    """The static arguments of a call, as a hashable key.

    Keys of values that compare equal but differ in type (1 and 1.0) or in the sign of a zero are unequal.

    Attributes:
        count: number of positional arguments of the full call.
        values: position or name, type and value of each static argument, the value as `exact` returns it.
    """

    count: int  # type: ignore[assignment]  # hides the method of tuples
    values: tuple[tuple[int | str, type, Any], ...]

    def full_call(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return `(args, kwargs)` of the full call, from its traced arguments."""
        static = {where: _plain_value(value) for where, _, value in self.values}
        traced = iter(args)
        positional = tuple(static[i] if i in static else next(traced) for i in range(self.count))
        return positional, {**kwargs, **{name: x for name, x in static.items() if isinstance(name, str)}}

    def traced_leaves(self, in_tree: Any) -> tuple[Any, tuple[int, ...]]:
        """Return the full call's structure, with each static argument as one leaf, and the traced leaves' indices."""
        marked = self._replace(values=tuple((where, kind, _STATIC) for where, kind, _ in self.values))
        leaves, whole = tree.tree_flatten(marked.full_call(*tree.tree_unflatten(in_tree, range(in_tree.num_leaves))))
        return whole, tuple(i for i, leaf in enumerate(leaves) if leaf is not _STATIC)


_STATIC = object()  # stands for a static argument among the leaves


def _plain_value(value: Any) -> Any:
    """Return the user's value behind one that `exact` may have wrapped."""
    return value.value if type(value) is Exact else value


class StaticArguments:
    """The static arguments of one function, by position (not negative) and by name.

    Raises:
        TypeError, ValueError: the function has no such parameter.
    """

    __slots__ = ("fun", "names", "numbers")

    def __init__(self, fun: Callable[..., Any], numbers: Any, names: Any) -> None:
        self.fun = fun
        self.numbers, self.names = named_arguments(fun, "static", numbers, names)

    def __bool__(self) -> bool:
        return bool(self.numbers or self.names)

    def split(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[tuple[Any, ...], dict[str, Any]], StaticKey | None]:
        """Split a call into `(args, kwargs)` of the traced arguments and the key of the static ones, or None.

        Raises:
            TypeError: a static argument is not hashable.
        """
        if not self.numbers and not self.names:
            return (args, kwargs), None
        static: list[tuple[int | str, Any]] = [(i, args[i]) for i in self.numbers if i < len(args)]
        static += [(name, kwargs[name]) for name in self.names if name in kwargs]
        values = tuple((where, type(value), exact(value)) for where, value in static)
        for where, _, value in values:
            self._check_hashable(where, value)
        traced = tuple(x for i, x in enumerate(args) if i not in self.numbers)
        rest = {name: x for name, x in kwargs.items() if name not in self.names}
        return (traced, rest), StaticKey(len(args), values)

    def bind_static(self, static: StaticKey | None) -> Callable[..., Any]:
        """Return the function of the traced arguments alone, with the static arguments bound."""
        fun = self.fun
        if static is None:
            return fun

        @functools.wraps(fun, assigned=("__module__", "__name__", "__qualname__"), updated=())
        def of_traced(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = static.full_call(args, kwargs)
            return fun(*args, **kwargs)

        return of_traced

    def debug_info(self, in_tree: Any, static: StaticKey | None) -> DebugInfo:
        """Return the debug info of a trace, with the arguments' names in the full call."""
        if static is None:
            return DebugInfo(self.fun, "jit", in_tree)
        return DebugInfo(self.fun, "jit", *static.traced_leaves(in_tree))

    def _check_hashable(self, where: int | str, value: Any) -> None:
        """Raise TypeError, naming the argument and a remedy, if a static value has no hash."""
        try:
            hash(value)
        except TypeError:
            value = _plain_value(value)
            kind = "a traced value" if isinstance(value, Tracer) else f"of type {type(value).__name__}"
            raise TypeError(
                f"jit of {fun_name(self.fun)}: static argument {self.name_of(where)} has to be hashable, "
                f"got {value!r} ({kind}); {_hashable_alternative(value)}do not mark the argument as static"
            ) from None

    def name_of(self, where: int | str) -> str:
        """Return a static argument's name, quoted, or its number if the signature has no name for it."""
        if isinstance(where, str):
            return repr(where)
        try:
            return repr(list(inspect.signature(self.fun).parameters)[where])
        except (TypeError, ValueError, IndexError):
            return f"number {where}"


def _hashable_alternative(value: Any) -> str:
    """Return a clause of a message: what to pass in place of a value that has no hash."""
    if isinstance(value, Tracer):
        return "it is an argument of an enclosing transformation: pass the value from outside of it, or "
    if isinstance(value, list):
        return "pass a tuple instead of a list, or "
    if isinstance(value, tuple):
        return "make each of its items hashable, or "
    if is_dataclass(value):
        return "make its class a @dataclass(frozen=True), or "
    return "pass a tuple of its items, or " if isinstance(value, dict | set) else ""
