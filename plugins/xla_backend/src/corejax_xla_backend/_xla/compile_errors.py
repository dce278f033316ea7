"""What XLA and MLIR say against a program, in terms of its primitives and the user's lines."""

from __future__ import annotations

import re

from corejax.extend import BackendError

# MLIR's `error: "jit(f)/acme.cube"("f"("file.py":12:16)): what is wrong`, of which a place is not always there.
_LOCATED = re.compile(r'error: (?P<place>"(?:[^"\\]|\\.)*"(?:\([^\n]*?\))?): (?P<what>[^\n]*)')
_PLACE = re.compile(r'"(?P<path>(?:[^"\\]|\\.)*)"(?:\("(?P<function>[^"]*)"\("(?P<file>[^"]*)":(?P<line>\d+):)?')
# What is no MLIR at all has its place in the text, `error: "-":12:41: what is wrong`.
_WRITTEN = re.compile(r'error: "-":(?P<line>\d+):\d+: (?P<what>[^\n]*)')
_UNREGISTERED = re.compile(
    r"No (?:FFI handler|registered implementation|custom call)[^\n]*?\b(?:for|to) (?P<target>\S+)"
)


def compile_failure(name: str, text: str, error: Exception) -> BackendError:
    """Return the error for a program that MLIR or XLA refuses; its StableHLO has locations."""
    said = str(error)
    located = _LOCATED.search(said)
    if located is not None:
        where, primitive = _in_words(located["place"])
        what = located["what"].rstrip(".")
        return BackendError(
            f"jit of {name}: the StableHLO of {where} is not valid: {what}. To check the translation rule: "
            f"corejax verify {primitive}"
        )
    written = _WRITTEN.search(said)
    if written is not None and (found := _operation_at(text, int(written["line"]))) is not None:
        operation, place = found
        where, primitive = _in_words(place)
        return BackendError(
            f"jit of {name}: the StableHLO of {where} cannot be read: {written['what']}, in {operation}. To check the "
            f"translation rule: corejax verify {primitive}"
        )
    missing = _UNREGISTERED.search(said)
    if missing is not None:
        place = _place_of_target(text, missing["target"])
        where = f", which {_in_words(place)[0]} calls" if place else ""
        return BackendError(
            f"jit of {name}: no kernel is registered as {missing['target']!r} on this platform{where}; "
            f"corejax.ffi.register_ffi_target registers one ({said})"
        )
    return BackendError(f"jit of {name}: XLA could not compile it: {said}")


def _in_words(place: str) -> tuple[str, str]:
    """`primitive 'acme.cube' at file.py:12 (f)`, and the primitive's name."""
    found = _PLACE.search(place)
    if found is None:
        return place, ""
    primitive = found["path"].rpartition("/")[2]
    line = f" at {found['file']}:{found['line']} ({found['function']})" if found["file"] else ""
    return f"primitive {primitive!r}{line}", primitive


def _place_of_target(text: str, target: str) -> str | None:
    """The location of the call of a kernel."""
    call = re.search(rf'call_target_name = "{re.escape(target)}".* loc\((#corejax\d+)\)', text)
    return None if call is None else _location(text, call[1])


def _operation_at(text: str, number: int) -> tuple[str, str] | None:
    """The operation of a line of the text, and its location; None where it has none."""
    lines = text.splitlines()
    found = re.search(r"^\s*(.*?) loc\((#corejax\d+)\)$", lines[number - 1]) if 0 < number <= len(lines) else None
    place = None if found is None else _location(text, found[2])
    return None if found is None or place is None else (found[1], place)


def _location(text: str, alias: str) -> str | None:
    place = re.search(rf"^{alias} = loc\((.*)\)$", text, re.MULTILINE)
    return None if place is None else place[1]
