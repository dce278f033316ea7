"""Traces for https://ui.perfetto.dev, with the user's names for XLA's operations."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
from typing import Any

from corejax_xla_backend._jaxlib._profiler import live_instructions


def name_operations(path: str) -> bytes:
    """Rename the operations in a trace as the program names them, add the user's lines, and return the new JSON.

    XLA's names stay in the events' arguments (`hlo_op`, `hlo_module`). A fusion lists the names of all its operations
    (`fused`). Operations of programs that are freed keep XLA's names. The file is replaced atomically.
    """
    with gzip.open(path, "rb") as file:
        recorded = json.load(file)
    recorded.pop("metadata", None)  # Perfetto rejects metadata
    recorded["traceEvents"] = [event for event in recorded["traceEvents"] if event]  # the last event is empty
    operations = [event for event in recorded["traceEvents"] if "hlo_op" in event.get("args", ())]
    known = live_instructions({_module(event) for event in operations})
    for event in operations:
        instruction = known.get((_module(event), event["args"]["hlo_op"]))
        if instruction is not None:
            event["name"] = instruction.name
            event["args"]["source"] = instruction.source
            if len(instruction.fused) > 1:
                event["args"]["fused"] = ", ".join(instruction.fused)
    text = json.dumps(recorded, separators=(",", ":")).encode()
    try:
        with gzip.open(f"{path}.new", "wb", compresslevel=6) as file:
            file.write(text)
        os.replace(f"{path}.new", path)
    finally:
        with contextlib.suppress(FileNotFoundError):  # the file remains only after an error
            os.remove(f"{path}.new")
    return text


def _module(event: Any) -> str:
    """Return the name of an event's program, without the number that some platforms add."""
    return str(event["args"].get("hlo_module", "")).partition("(")[0]
