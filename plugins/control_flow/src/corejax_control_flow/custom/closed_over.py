"""Errors for values that a function with custom rules closes over and cannot use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from corejax.extend import Trace, Tracer, current_trace, get_aval
from corejax.extend.messages import UnexpectedTracerError, not_of_rule


@contextmanager
def explained(transform: str, name: str) -> Iterator[None]:
    """Attribute errors inside to the user's function or rule, and explain an escaped tracer as a closed-over value.

    Raises:
        ClosedOverError: in place of an `UnexpectedTracerError`.
    """
    try:
        yield
    except UnexpectedTracerError as error:
        if isinstance(error, ClosedOverError):
            raise
        raise ClosedOverError(
            f"{transform} function {name}, or one of its rules, closes over a value of a transformation around "
            "the call, for which it has no derivative (or the trace of which has ended when the rule runs). Pass "
            "the value as an argument; in reverse mode, a rule's residuals carry it to the backward pass; "
            "for functions that are arguments themselves, use closure_convert."
        ) from error
    except Exception as error:
        not_of_rule(error)
        raise


class ClosedOverError(UnexpectedTracerError):
    """A function with custom rules, or one of its rules, closes over a traced value that it cannot use."""


def refuse_closed_over(transform: str, name: str, tangents: Sequence[Any]) -> None:
    """Raise ClosedOverError if a closed-over value has a tangent."""
    nonzero = [t for t in tangents if t is not None]
    if nonzero:
        raise ClosedOverError(
            f"{transform} function {name} closes over a value ({_shown(nonzero[0])}) that is being differentiated, but "
            "its rule differentiates only with respect to arguments. Pass the value as an argument."
        )


def refuse_closed_over_results(transform: str, name: str, results: Sequence[Any]) -> None:
    """Raise ClosedOverError if a rule returns a value of a trace that has ended or is above the rule's trace."""
    for x in results:
        if isinstance(x, Tracer) and (not x._trace.alive or _is_above(x._trace, current_trace())):
            raise ClosedOverError(
                f"a rule of {transform} function {name} returns a closed-over value ({_shown(x)}) of a "
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
