"""Plugins: what they export, and the kit that checks them."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from corejax.extend._when_used import when_used as _when_used
from corejax.messages.homes import install_advice as install_advice
from corejax.plugins import examples_of as examples_of
from corejax.plugins import exported as exported
from corejax.plugins import exported_names as exported_names
from corejax.plugins import missing_name as missing_name
from corejax.plugins import plugins as plugin_records
from corejax.plugins import provided_checks as provided_checks
from corejax.plugins.hookspecs import API_VERSION as API_VERSION

__all__ = [
    "API_VERSION",
    "FunctionCall",
    "examples_of",
    "exported",
    "exported_names",
    "install_advice",
    "isolated_plugins",
    "manifest",
    "missing_name",
    "plugin_records",
    "provided_checks",
    "takes_function",
]

if _TYPE_CHECKING:
    from corejax.cli.function_commands import FunctionCall as FunctionCall
    from corejax.cli.function_commands import takes_function as takes_function
    from corejax.plugins import _manifest as manifest
    from corejax.plugins._isolation import isolated_plugins as isolated_plugins
else:
    __getattr__, __dir__ = _when_used(
        __name__,
        {
            "corejax.cli.function_commands": "FunctionCall takes_function",
            "corejax.plugins._isolation": "isolated_plugins",
        },
        {
            "manifest": "corejax.plugins._manifest",
        },
    )
