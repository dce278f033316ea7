"""Errors of XLA and MLIR about a program, in terms of its primitives and the user's lines."""

from __future__ import annotations

import re

from corejax.extend import BackendError

# MLIR's `error: "jit(f)/acme.cube"("f"("file.py":12:16)): what is wrong`; the file and line may be missing.
_LOCATED = re.compile(r'error: (?P<place>"(?:[^"\\]|\\.)*"(?:\([^\n]*?\))?): (?P<what>[^\n]*)')
_PLACE = re.compile(r'"(?P<path>(?:[^"\\]|\\.)*)"(?:\("(?P<function>[^"]*)"\("(?P<file>[^"]*)":(?P<line>\d+):)?')
# An error of MLIR's parser has its place in the text, `error: "-":12:41: what is wrong`.
_PARSER = re.compile(r'error: "-":(?P<line>\d+):\d+: (?P<what>[^\n]*)')
_UNREGISTERED = re.compile(
    r"No (?:FFI handler|registered implementation|custom call)[^\n]*?\b(?:for|to) (?P<target>\S+)"
)


def compile_failure(name: str, text: str, error: Exception) -> BackendError:
    """Return the error for a program that MLIR or XLA rejects; `text` is its StableHLO with locations."""
    message = str(error)
    located = _LOCATED.search(message)
    if located is not None:
        where, primitive = _describe_place(located["place"])
        what = located["what"].rstrip(".")
        return BackendError(
            f"jit of {name}: the StableHLO of {where} is not valid: {what}. To check the translation rule: "
            f"corejax verify {primitive}"
        )
    unreadable = _PARSER.search(message)
    if unreadable is not None and (located_operation := _operation_at(text, int(unreadable["line"]))) is not None:
        operation, place = located_operation
        where, primitive = _describe_place(place)
        return BackendError(
            f"jit of {name}: the StableHLO of {where} cannot be read: {unreadable['what']}, in {operation}. To check "
            f"the translation rule: corejax verify {primitive}"
        )
    missing = _UNREGISTERED.search(message)
    if missing is not None:
        call = _place_of_target(text, missing["target"])
        where = f", which {_describe_place(call)[0]} calls" if call else ""
        return BackendError(
            f"jit of {name}: no kernel is registered as {missing['target']!r} on this platform{where}; "
            f"corejax.ffi.register_ffi_target registers one ({message})"
        )
    return BackendError(f"jit of {name}: XLA could not compile the program: {message}")


def _describe_place(place: str) -> tuple[str, str]:
    """Return a text such as `primitive 'acme.cube' at file.py:12 (f)`, and the primitive's name."""
    parts = _PLACE.search(place)
    if parts is None:
        return place, ""
    primitive = parts["path"].rpartition("/")[2]
    line = f" at {parts['file']}:{parts['line']} ({parts['function']})" if parts["file"] else ""
    return f"primitive {primitive!r}{line}", primitive


def _place_of_target(text: str, target: str) -> str | None:
    """Return the location of the call of a kernel, or None."""
    call = re.search(rf'call_target_name = "{re.escape(target)}".* loc\((#corejax\d+)\)', text)
    return None if call is None else _location(text, call[1])


def _operation_at(text: str, number: int) -> tuple[str, str] | None:
    """Return the operation at a line of the text and its location; None if the line has no location."""
    lines = text.splitlines()
    line = re.search(r"^\s*(.*?) loc\((#corejax\d+)\)$", lines[number - 1]) if 0 < number <= len(lines) else None
    place = None if line is None else _location(text, line[2])
    return None if line is None or place is None else (line[1], place)


def _location(text: str, alias: str) -> str | None:
    """Return the location that an alias such as `#corejax3` stands for, or None."""
    place = re.search(rf"^{alias} = loc\((.*)\)$", text, re.MULTILINE)
    return None if place is None else place[1]
