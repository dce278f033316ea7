"""Errors for values that a function with rules of its own closes over and cannot use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from corejax.extend import Trace, Tracer, current_trace, get_aval
from corejax.extend.messages import UnexpectedTracerError, not_of_rule


@contextmanager
def explained(transform: str, name: str) -> Iterator[None]:
    """What is raised inside comes from the user's function or rule; an escaped tracer is a value that it closes over.

    Raises:
        ClosedOverError: in place of the `UnexpectedTracerError`.
    """
    try:
        yield
    except UnexpectedTracerError as error:
        if isinstance(error, ClosedOverError):
            raise
        raise ClosedOverError(
            f"{transform} function {name}, or a rule of it, closes over a value of a transformation around "
            "the call, for which it has no derivative there (or which is gone by the time that the rule runs). Pass "
            "the value as an argument; in reverse mode a rule's residuals carry it to the backward pass; "
            "closure_convert does so for functions that are arguments themselves."
        ) from error
    except Exception as error:
        not_of_rule(error)
        raise


class ClosedOverError(UnexpectedTracerError):
    """A function with rules of its own, or one of its rules, closes over a traced value that it cannot use."""


def refuse_closed_over(transform: str, name: str, tangents: Sequence[Any]) -> None:
    """Refuse tangents of what a function closes over.

    Raises:
        ClosedOverError: there is one.
    """
    moving = [t for t in tangents if t is not None]
    if moving:
        raise ClosedOverError(
            f"{transform} function {name} closes over a value ({_shown(moving[0])}) that is being differentiated, but "
            "its rule only says how to differentiate with respect to arguments. Pass the value as an argument."
        )


def refuse_closed_over_results(transform: str, name: str, results: Sequence[Any]) -> None:
    """Refuse results that a rule did not compute: values of traces that have ended or are above the rule's.

    Raises:
        ClosedOverError: there is one.
    """
    for x in results:
        if isinstance(x, Tracer) and (not x._trace.alive or _is_above(x._trace, current_trace())):
            raise ClosedOverError(
                f"a rule of {transform} function {name} returns a value ({_shown(x)}) that it closes over, of a "
                "transformation around the call. Pass the value as an argument; a rule's residuals carry it to the "
                "backward pass."
            )


def _shown(x: Any) -> str:
    return get_aval(x).str_short(short_dtypes=False)


def _is_above(trace: Trace, other: Trace) -> bool:
    below = trace.parent
    while below is not None and below is not other:
        below = below.parent
    return below is not None
