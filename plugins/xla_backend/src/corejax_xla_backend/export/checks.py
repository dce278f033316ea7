"""What an artifact cannot hold: functions of this process, and kernels that another one may not have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from corejax.extend import ClosedJaxpr
from corejax.extend.messages import describe_source
from corejax.extend.programs import programs_of

_STABLE = re.compile(r"lapack_\w+_ffi")  # jaxlib's own, which keep their meaning; loading registers them
_CALLBACK = re.compile(r"xla_(ffi_)?python_\w*callback")

_STRING = r'"((?:[^"\\]|\\.)*)"'
_CALL = re.compile(
    rf'"stablehlo\.custom_call"[^\n]*?call_target_name = {_STRING}[^\n]*? loc\(#corejax(\d+)\)'
    rf"|stablehlo\.custom_call @(?:{_STRING}|([\w.$-]+))\("
)
_PLACE = re.compile(rf"^#corejax(\d+) = loc\({_STRING}(?:\({_STRING}\({_STRING}:(\d+):\d+\)\))?\)$", re.MULTILINE)


class CustomCall(NamedTuple):
    """A call of a kernel in a program's text."""

    target: str
    primitive: str
    place: str  # where the user's line is, in words


def check_effects(name: str, closed: ClosedJaxpr) -> None:
    """Refuse ordered effects.

    Raises:
        NotImplementedError: naming the primitive and the user's line.
    """
    for eqn in (eqn for program in programs_of(closed) for eqn in program.eqns):
        for effect in eqn.primitive.effects:
            if effect.startswith("ordered:"):
                raise NotImplementedError(
                    f"export of {name}: primitive {eqn.primitive.name!r} has the ordered effect "
                    f"{effect.partition(':')[2]!r} (traced at {describe_source(eqn.source_info)}): an artifact cannot "
                    "keep the order of what happens outside of it. Leave it outside of the exported function"
                )


def unordered_effects(closed: ClosedJaxpr) -> tuple[str, ...]:
    """Names of the program's effects."""
    return tuple(sorted({x for program in programs_of(closed) for eqn in program.eqns for x in eqn.primitive.effects}))


def check_custom_calls(name: str, text: str, allowed: Sequence[str]) -> None:
    """Refuse calls back into Python, and kernels that nobody vouches for.

    Args:
        name: the function's.
        text: its StableHLO with locations.
        allowed: targets that the user vouches for.

    Raises:
        NotImplementedError: the program calls Python.
        ValueError: it calls a kernel that is not allowed.
    """
    for call in _custom_calls(text):
        if _CALLBACK.fullmatch(call.target):
            raise NotImplementedError(
                f"export of {name}: {call.primitive} calls Python back on the host ({call.place}): the function that "
                "it calls is in this process and cannot be in an artifact. Give the primitive an XLA translation or a "
                "decomposition, or leave the callback outside of the exported function"
            )
        if call.target not in allowed and not _STABLE.fullmatch(call.target):
            raise ValueError(
                f"export of {name}: {call.primitive} calls the kernel {call.target!r} ({call.place}), which the "
                "process that loads the artifact may not have, or with another meaning. Where that is taken care of, "
                f"allow it: export(f, disabled_checks=[DisabledSafetyCheck.custom_call({call.target!r})])"
            )


def _custom_calls(text: str) -> Iterator[CustomCall]:
    if "stablehlo.custom_call" not in text:
        return
    places = {found[1]: found for found in _PLACE.finditer(text)}
    for found in _CALL.finditer(text):
        target = _unescaped(found[1] or found[3] or found[4])
        place = places.get(found[2])
        if place is None:
            yield CustomCall(target, "a function that was exported before", "which this one calls")
        else:
            primitive = f"primitive {_unescaped(place[2]).rpartition('/')[2]!r}"
            where = f"{_unescaped(place[4])}:{place[5]} ({_unescaped(place[3])})" if place[4] else "an unknown line"
            yield CustomCall(target, primitive, f"traced at {where}")


def _unescaped(text: str) -> str:
    raw = re.sub(rb"\\([0-9A-F]{2})", lambda found: bytes([int(found[1], 16)]), text.encode())
    return raw.decode("utf-8", "replace")
