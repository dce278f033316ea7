"""Errors and warnings, the user's line, caches, and what is restored after a block."""

from __future__ import annotations

from corejax import observe as observe
from corejax.base.restoring import Changed as Changed
from corejax.base.restoring import Restoring as Restoring
from corejax.base.restoring import run_within as run_within
from corejax.base.texts import json_text as json_text
from corejax.base.texts import shown as shown
from corejax.errors import CorejaxDeprecationWarning as CorejaxDeprecationWarning
from corejax.errors import CorejaxError as CorejaxError
from corejax.errors import DerivedRuleWarning as DerivedRuleWarning
from corejax.errors import HostCallbackError as HostCallbackError
from corejax.errors import InconclusiveDimensionOperation as InconclusiveDimensionOperation
from corejax.errors import KeyReuseError as KeyReuseError
from corejax.errors import NonConcreteBooleanIndexError as NonConcreteBooleanIndexError
from corejax.errors import NotDifferentiableError as NotDifferentiableError
from corejax.errors import NotLinearError as NotLinearError
from corejax.errors import PluginError as PluginError
from corejax.errors import PluginMissingError as PluginMissingError
from corejax.errors import ShardingTypeError as ShardingTypeError
from corejax.errors import UnexpectedTracerError as UnexpectedTracerError
from corejax.messages.marks import attributed_rule as attributed_rule
from corejax.messages.marks import not_of_rule as not_of_rule
from corejax.messages.source_info import called_as as called_as
from corejax.messages.source_info import called_frame as called_frame
from corejax.messages.source_info import called_function as called_function
from corejax.messages.source_info import capture as capture_source
from corejax.messages.source_info import describe as describe_source
from corejax.messages.source_info import locate as locate_source
from corejax.messages.source_info import register_internal as register_internal
from corejax.messages.source_info import scope_of as scope_of
from corejax.messages.source_info import scope_text as scope_text
from corejax.messages.source_info import user_frames as user_frames
from corejax.messages.source_info import user_line as user_line
from corejax.messages.source_info import warn_user as warn_user
from corejax.messages.tracebacks import api_boundary as api_boundary
from corejax.messages.tracebacks import frames_left_out as frames_left_out
from corejax.rules.attribution import note_origin as note_origin
from corejax.settings.caches import Exact as Exact
from corejax.settings.caches import clears_cache as clears_cache
from corejax.settings.caches import drop_oldest as drop_oldest
from corejax.settings.caches import exact as exact

__all__ = [
    "Changed",
    "CorejaxDeprecationWarning",
    "CorejaxError",
    "DerivedRuleWarning",
    "Exact",
    "HostCallbackError",
    "InconclusiveDimensionOperation",
    "KeyReuseError",
    "NonConcreteBooleanIndexError",
    "NotDifferentiableError",
    "NotLinearError",
    "PluginError",
    "PluginMissingError",
    "Restoring",
    "ShardingTypeError",
    "UnexpectedTracerError",
    "api_boundary",
    "attributed_rule",
    "called_as",
    "called_frame",
    "called_function",
    "capture_source",
    "clears_cache",
    "describe_source",
    "drop_oldest",
    "exact",
    "frames_left_out",
    "json_text",
    "locate_source",
    "not_of_rule",
    "note_origin",
    "observe",
    "register_internal",
    "run_within",
    "scope_of",
    "scope_text",
    "shown",
    "user_frames",
    "user_line",
    "warn_user",
]
