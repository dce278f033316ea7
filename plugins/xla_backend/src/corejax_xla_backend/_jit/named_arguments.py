"""Arguments of a function that an option of `jit` names, by position and by name: the static and the donated ones."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from corejax.extend import fun_name


class NamedArguments(NamedTuple):
    """Arguments by position, not negative, and by name; each of the two completed from the other."""

    numbers: tuple[int, ...]
    names: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.numbers or self.names)


def named_arguments(fun: Any, option: str, numbers: Any, names: Any) -> NamedArguments:
    """What `static_argnums` and `static_argnames`, say, stand for.

    Args:
        fun: the function.
        option: "static" or "donate".
        numbers: an integer or several; negative ones count from the last positional parameter.
        names: a name or several.

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
