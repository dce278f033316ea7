"""Errors for values that a function with custom rules closes over and cannot use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import Trace, Tracer, current_trace, get_aval
from corejax.extend.messages import UnexpectedTracerError, not_of_rule


def explain(error: Exception, transform: str, name: str) -> None:
    """Attribute an error to the user's function or rule; explain an escaped tracer as a closed-over value.

    Raises:
        ClosedOverError: in place of another `UnexpectedTracerError`.
    """
    if isinstance(error, UnexpectedTracerError) and not isinstance(error, ClosedOverError):
        raise ClosedOverError(
            f"{transform} function {name}, or one of its rules, closes over a value of a transformation around "
            "the call, for which it has no derivative (or the trace of which has ended when the rule runs). Pass "
            "the value as an argument; in reverse mode, a rule's residuals carry it to the backward pass; "
            "for functions that are arguments themselves, use closure_convert."
        ) from error
    if not isinstance(error, ClosedOverError):
        not_of_rule(error)


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
