"""`corejax.tree` under JAX's older module name: the same functions, without the short names."""

import typing as _typing

from corejax import tree as _tree
from corejax.base.plugin_access import complete_from_plugins as _complete_from_plugins
from corejax.tree import *  # noqa: F403

_complete_from_plugins(globals())
if not _typing.TYPE_CHECKING:  # type checkers take all public names; `import *` also takes those of plugins
    __all__ = [name for name in globals()["__dir__"]() if name[0] != "_" and f"tree_{name}" not in _tree.__all__]
