"""Arguments that options of `jit` name, by position and by name: the static and the donated ones."""

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
    """Arguments by position, not negative, and by name; each of the two completed from the other."""

    numbers: tuple[int, ...]
    names: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.numbers or self.names)

    def given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Return those of a call's arguments."""
        found = [args[i] for i in self.numbers if i < len(args)]
        return found + [kwargs[name] for name in self.names if name in kwargs]

    def leaves(self, static_numbers: tuple[int, ...], in_tree: Any) -> tuple[bool, ...]:
        """Return whether each leaf of the traced `(args, kwargs)` is of one of these; empty if there are none."""
        if not self:
            return ()
        args, kwargs = tree.tree_unflatten(in_tree, range(in_tree.num_leaves))
        numbers = [i for i in range(len(args) + len(static_numbers)) if i not in static_numbers]
        given = [arg for i, arg in zip(numbers, args, strict=False) if i in self.numbers]
        given += [kwargs[name] for name in self.names if name in kwargs]
        leaves = set(tree.tree_leaves(given))
        return tuple(i in leaves for i in range(in_tree.num_leaves))


def named_arguments(fun: Any, option: str, numbers: Any, names: Any) -> NamedArguments:
    """Return the arguments that options such as `static_argnums` and `static_argnames` name.

    The option is "static" or "donate"; negative numbers count from the last positional parameter.

    Raises:
        TypeError: numbers are no integers, or names no strings.
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


def check_apart(fun: Any, static: Any, donated: NamedArguments) -> None:
    """Refuse arguments that are static and donated.

    Raises:
        ValueError: naming them.
    """
    both = [*(set(static.numbers) & set(donated.numbers)), *(set(static.names) & set(donated.names))]
    if both:
        named = ", ".join(repr(x) for x in sorted(both, key=str))
        raise ValueError(
            f"jit of {fun_name(fun)}: arguments {named} are static and donated; a static one has no buffer to donate"
        )


def _integers(fun: Any, option: str, given: Any) -> tuple[int, ...]:
    if given is None:
        return ()
    try:
        several = given if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
        return tuple(operator.index(i) for i in several)
    except TypeError:
        raise TypeError(
            f"jit of {fun_name(fun)}: {option} is a position or several, such as 0 or (0, 2), got {given!r}"
        ) from None


def _strings(fun: Any, option: str, given: Any) -> tuple[str, ...]:
    if given is None:
        return ()
    several = (given,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    if not all(isinstance(name, str) for name in several):
        raise TypeError(
            f"jit of {fun_name(fun)}: {option} is a name or several, such as 'n' or ('n', 'm'), got {given!r}"
        )
    return several


def _check_parameters(
    fun: Callable[..., Any],
    option: str,
    parameters: Sequence[inspect.Parameter],
    count: int,
    numbers: Iterable[int],
    names: Iterable[str],
) -> None:
    open_ended = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    any_keyword = any(p.kind is p.VAR_KEYWORD for p in parameters)
    keywords = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    for i in numbers:
        if not (-count <= i and (i < count or open_ended)):
            raise ValueError(
                f"jit of {fun_name(fun)}: {option}_argnums has {i!r}, but the function takes {count} positional "
                "arguments"
            )
    by_position = {p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL)}
    for name in names:
        if name in by_position:
            raise ValueError(
                f"jit of {fun_name(fun)}: {option}_argnames has {name!r}, which is given by position only; say where "
                f"it is in {option}_argnums"
            )
        if name not in keywords and not any_keyword:
            raise ValueError(
                f"jit of {fun_name(fun)}: {option}_argnames has {name!r}, but the function has no such parameter"
            )


class StaticKey(NamedTuple):
    """The static part of a call: hashable, and unequal for equal values of unequal types (1 and 1.0) or signs of zeros.

    Attributes:
        count: number of positional arguments of the whole call.
        values: position or name, type and value of each static argument, the value as `exact` gives it.
    """

    count: int
    values: tuple[tuple[int | str, type, Any], ...]

    def whole_call(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The call again, from its traced arguments."""
        fixed = {where: _given(value) for where, _, value in self.values}
        traced = iter(args)
        positional = tuple(fixed[i] if i in fixed else next(traced) for i in range(self.count))
        return positional, {**kwargs, **{name: x for name, x in fixed.items() if isinstance(name, str)}}

    def traced_leaves(self, in_tree: Any) -> tuple[Any, tuple[int, ...]]:
        """Structure of the whole call, a static argument being one leaf, and the indices of the traced leaves."""
        marked = self._replace(values=tuple((where, kind, _STATIC) for where, kind, _ in self.values))
        leaves, whole = tree.tree_flatten(marked.whole_call(*tree.tree_unflatten(in_tree, range(in_tree.num_leaves))))
        return whole, tuple(i for i, leaf in enumerate(leaves) if leaf is not _STATIC)


_STATIC = object()


def _given(value: Any) -> Any:
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
        """Return `(args, kwargs)` of the traced arguments, and the static arguments (None if there are none).

        Raises:
            TypeError: a static argument is not hashable.
        """
        if not self.numbers and not self.names:
            return (args, kwargs), None
        given = [(i, args[i]) for i in self.numbers if i < len(args)]
        given += [(name, kwargs[name]) for name in self.names if name in kwargs]
        values = tuple((where, type(value), exact(value)) for where, value in given)
        for where, _, value in values:
            self._check_hashable(where, value)
        traced = tuple(x for i, x in enumerate(args) if i not in self.numbers)
        rest = {name: x for name, x in kwargs.items() if name not in self.names}
        return (traced, rest), StaticKey(len(args), values)

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
