"""What backends are made of: devices, buffers, compiled programs, memory, and checks of values."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from corejax.core.array import bound_device as bound_device
from corejax.core.array import buffer_of as buffer_of
from corejax.core.array import is_spread as is_spread
from corejax.core.array import placed as placed
from corejax.core.array import wait_for as wait_for
from corejax.core.backend_calls import compiled_by as compiled_by
from corejax.core.backend_calls import run_by as run_by
from corejax.core.backends import DEFAULT_OPTIONS as DEFAULT_OPTIONS
from corejax.core.backends import CompileOptions as CompileOptions
from corejax.core.backends import Device as Device
from corejax.core.backends import Executable as Executable
from corejax.core.backends import RepeatableCall as RepeatableCall
from corejax.core.backends import Target as Target
from corejax.core.donation import donating as donating
from corejax.core.ownership import aligned_empty as aligned_empty
from corejax.extend._when_used import when_used as _when_used
from corejax.interpreters.checks import EvaluationCheck as EvaluationCheck
from corejax.interpreters.checks import check_values as check_values
from corejax.interpreters.checks import checks_values as checks_values
from corejax.interpreters.checks import evaluation_checks as evaluation_checks
from corejax.settings.memory_limit import bytes_text as bytes_text
from corejax.settings.memory_limit import check_memory as check_memory

__all__ = [
    "DEFAULT_OPTIONS",
    "CompileOptions",
    "Device",
    "EvaluationCheck",
    "Executable",
    "RepeatableCall",
    "Target",
    "TranslationContext",
    "TranslationValue",
    "aligned_empty",
    "bound_device",
    "buffer_of",
    "bytes_text",
    "check_memory",
    "check_values",
    "checks_values",
    "compiled_by",
    "donating",
    "evaluation_checks",
    "is_spread",
    "placed",
    "run_by",
    "wait_for",
]

if _TYPE_CHECKING:
    from corejax.interpreters.translation import TranslationContext as TranslationContext
    from corejax.interpreters.translation import TranslationValue as TranslationValue
else:
    __getattr__, __dir__ = _when_used(
        __name__,
        {
            "corejax.interpreters.translation": "TranslationContext TranslationValue",
        },
    )
