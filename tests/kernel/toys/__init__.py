"""A toy plugin: a few primitives with every rule, so that the kernel's tests need no plugin.

This directory counts as library code (`register_internal`): lines of the tests are the user's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from corejax import plugins
from corejax.arrays.structural import structural
from corejax.base import tables
from corejax.core import array_methods
from corejax.messages import source_info
from corejax.plugins._plugin_manager import PluginManager
from corejax.settings.selection import VARIABLE
from tests.kernel.toys.functions import *  # noqa: F403
from tests.kernel.toys.functions import OPERATIONS, OPERATORS
from tests.kernel.toys.higher import *  # noqa: F403
from tests.kernel.toys.primitives import *  # noqa: F403
from tests.kernel.toys.several import *  # noqa: F403

source_info.register_internal(os.path.dirname(__file__))


@contextmanager
def installed(operations: dict[str, Any] = OPERATIONS, operators: dict[str, Any] = OPERATORS) -> Iterator[None]:
    """The toys as the only plugin, for a `with` block: structural operations, array operators, no discovery."""
    earlier = plugins.set_manager(PluginManager(find=lambda: ()))
    before = tables.snapshot(array_methods.methods, structural.table)
    selection = os.environ.pop(VARIABLE, None)  # of installed plugins, which are not here
    try:
        array_methods.methods.clear()
        for name, operation in operations.items():
            structural.provide(name, operation, override=True)
        for name, method in operators.items():
            array_methods.provide(name, method)
        yield
    finally:
        if selection is not None:
            os.environ[VARIABLE] = selection
        tables.restore(before)
        plugins.set_manager(earlier)
