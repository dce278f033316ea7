"""Checks for content that artifacts cannot have: callbacks into this process, and kernels that others may lack."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from corejax.extend import ClosedJaxpr
from corejax.extend.messages import describe_source
from corejax.extend.programs import programs_of

_STABLE = re.compile(r"lapack_\w+_ffi")  # jaxlib's own kernels, which are stable; loading registers them
_CALLBACK = re.compile(r"xla_(ffi_)?python_\w*callback")

_STRING = r'"((?:[^"\\]|\\.)*)"'
_CALL = re.compile(
    rf'"stablehlo\.custom_call"[^\n]*?call_target_name = {_STRING}[^\n]*? loc\(#corejax(\d+)\)'
    rf"|stablehlo\.custom_call @(?:{_STRING}|([\w.$-]+))\("
)
_PLACE = re.compile(rf"^#corejax(\d+) = loc\({_STRING}(?:\({_STRING}\({_STRING}:(\d+):\d+\)\))?\)$", re.MULTILINE)


class CustomCall(NamedTuple):
    """A custom call in a program's text.

    Attributes:
        target: name of the kernel.
        primitive: description of the primitive that calls it.
        place: description of the user's line.
    """

    target: str
    primitive: str
    place: str


def check_effects(name: str, closed: ClosedJaxpr) -> None:
    """Raise NotImplementedError if the program has ordered effects; the message names the primitive and its line."""
    for eqn in (eqn for program in programs_of(closed) for eqn in program.eqns):
        for effect in eqn.primitive.effects:
            if effect.startswith("ordered:"):
                raise NotImplementedError(
                    f"export of {name}: primitive {eqn.primitive.name!r} has the ordered effect "
                    f"{effect.partition(':')[2]!r} (traced at {describe_source(eqn.source_info)}): artifacts do not "
                    "support ordered effects. Move it out of the exported function"
                )


def unordered_effects(closed: ClosedJaxpr) -> tuple[str, ...]:
    """Return the sorted names of the program's effects."""
    return tuple(sorted({x for program in programs_of(closed) for eqn in program.eqns for x in eqn.primitive.effects}))


def check_custom_calls(name: str, text: str, allowed: Sequence[str]) -> None:
    """Raise an error if a program calls Python, or a kernel that is neither stable nor allowed.

    Args:
        name: name of the function.
        text: StableHLO of the function, with locations.
        allowed: names of kernels that the user allows.

    Raises:
        NotImplementedError: the program calls Python.
        ValueError: the program calls a kernel that is not allowed.
    """
    for call in _custom_calls(text):
        if _CALLBACK.fullmatch(call.target):
            raise NotImplementedError(
                f"export of {name}: {call.primitive} calls back into Python ({call.place}): the Python function exists "
                "in this process only and cannot be part of an artifact. Give the primitive an XLA translation or a "
                "decomposition, or move the callback out of the exported function"
            )
        if call.target not in allowed and not _STABLE.fullmatch(call.target):
            raise ValueError(
                f"export of {name}: {call.primitive} calls the kernel {call.target!r} ({call.place}), which the "
                "loading process may lack or define differently. If you have made sure that it does not, allow the "
                f"kernel: export(f, disabled_checks=[DisabledSafetyCheck.custom_call({call.target!r})])"
            )


def _custom_calls(text: str) -> Iterator[CustomCall]:
    if "stablehlo.custom_call" not in text:
        return
    places = {found[1]: found for found in _PLACE.finditer(text)}
    for found in _CALL.finditer(text):
        target = _unescaped(found[1] or found[3] or found[4])
        place = places.get(found[2])
        if place is None:
            yield CustomCall(target, "a function that was exported before", "which this function calls")
        else:
            primitive = f"primitive {_unescaped(place[2]).rpartition('/')[2]!r}"
            where = f"{_unescaped(place[4])}:{place[5]} ({_unescaped(place[3])})" if place[4] else "an unknown line"
            yield CustomCall(target, primitive, f"traced at {where}")


def _unescaped(text: str) -> str:
    raw = re.sub(rb"\\([0-9A-F]{2})", lambda found: bytes([int(found[1], 16)]), text.encode())
    return raw.decode("utf-8", "replace")
