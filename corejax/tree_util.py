"""`corejax.tree` under JAX's older module name: the same functions, without the short names."""

import typing as _typing

from corejax import tree as _tree
from corejax.base.plugin_access import complete_from_plugins as _complete_from_plugins
from corejax.tree import *  # noqa: F403

if not _typing.TYPE_CHECKING:  # type checkers take all public names
    __all__ = [name for name in _tree.__all__ if f"tree_{name}" not in _tree.__all__]

_complete_from_plugins(globals())
