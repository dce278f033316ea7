"""Traces for https://ui.perfetto.dev: XLA's operations by the user's names."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
from typing import Any

from corejax_xla_backend._jaxlib._profiler import live_instructions


def name_operations(path: str) -> bytes:
    """Call the operations in a trace as the program calls them, and add the user's lines; gives the new JSON.

    What XLA called an operation stays in its arguments (`hlo_op`, `hlo_module`), and of a fused one all names are
    there (`fused`). Programs that are gone keep XLA's names. The file is replaced whole.
    """
    with gzip.open(path, "rb") as file:
        recorded = json.load(file)
    recorded.pop("metadata", None)  # Perfetto refuses it
    recorded["traceEvents"] = [event for event in recorded["traceEvents"] if event]  # the last one is empty
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
        with contextlib.suppress(FileNotFoundError):  # it is there after an error only
            os.remove(f"{path}.new")
    return text


def _module(event: Any) -> str:
    """The program's name, without the number that some platforms add."""
    return str(event["args"].get("hlo_module", "")).partition("(")[0]
