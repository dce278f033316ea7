"""corejax: a minimal kernel for array primitives and their transformations; everything else is a plugin.

Names that plugins export (`corejax.jit`, `corejax.lax`, `corejax.numpy`, ...) are resolved at first use.
"""

from __future__ import annotations

import os as _os
import sys as _sys
from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from corejax import errors as _errors
from corejax import plugins as plugins
from corejax.base.texts import suggest_names as _suggest_names
from corejax.core.array import Array as Array
from corejax.core.avals import ShapedArray as ShapedArray
from corejax.core.avals import typeof as typeof
from corejax.core.trace import Tracer as Tracer
from corejax.interpreters import engine as _engine
from corejax.interpreters import host_programs as _host_programs
from corejax.interpreters.compile_time import ensure_compile_time_eval as ensure_compile_time_eval
from corejax.ir import ClosedJaxpr as ClosedJaxpr
from corejax.ir import Jaxpr as Jaxpr
from corejax.ir import eval_jaxpr as eval_jaxpr
from corejax.settings.caches import clear_caches as clear_caches
from corejax.settings.config import check_tracer_leaks as check_tracer_leaks
from corejax.settings.config import checking_leaks as checking_leaks
from corejax.settings.config import config as config
from corejax.settings.config import debug_infs as debug_infs
from corejax.settings.config import debug_nans as debug_nans
from corejax.settings.config import disable_jit as disable_jit
from corejax.settings.config import enable_checks as enable_checks
from corejax.settings.config import enable_x64 as enable_x64
from corejax.settings.config import numpy_dtype_promotion as numpy_dtype_promotion
from corejax.settings.config import numpy_rank_promotion as numpy_rank_promotion

if _TYPE_CHECKING:
    from corejax.transforms import ShapeDtypeStruct as ShapeDtypeStruct
    from corejax.transforms import eval_shape as eval_shape
    from corejax.transforms import float0 as float0
    from corejax.transforms import grad as grad
    from corejax.transforms import hessian as hessian
    from corejax.transforms import jacfwd as jacfwd
    from corejax.transforms import jacobian as jacobian
    from corejax.transforms import jacrev as jacrev
    from corejax.transforms import jvp as jvp
    from corejax.transforms import linear_transpose as linear_transpose
    from corejax.transforms import linearize as linearize
    from corejax.transforms import make_jaxpr as make_jaxpr
    from corejax.transforms import value_and_grad as value_and_grad
    from corejax.transforms import vjp as vjp
    from corejax.transforms import vmap as vmap

# Of `corejax.transforms`, which no first operation needs.
_TRANSFORMS = (
    *("ShapeDtypeStruct", "eval_shape", "float0", "grad", "hessian", "jacfwd", "jacobian", "jacrev", "jvp"),
    *("linear_transpose", "linearize", "make_jaxpr", "value_and_grad", "vjp", "vmap"),
)
# The kernel's own; other modules of it are nobody's to see, though the import system puts them here.
_NAMESPACES = ("core", "dtypes", "errors", "extend", "ir", "tree", "tree_util", "typing")

_suggest_names(vars(_errors))
plugins.wire(_os.path.dirname(__file__), _TRANSFORMS)


def __getattr__(name: str) -> _Any:
    if name == "__version__":
        from importlib_metadata import version

        return version("corejax")
    if (module := _sys.modules.get(f"corejax.{name}")) is not None:  # of an earlier import, which was interrupted
        globals()[name] = module
        return module
    if name in _NAMESPACES:
        return _import_module(f"corejax.{name}")
    if name in _TRANSFORMS:
        found = globals()[name] = getattr(_import_module("corejax.transforms"), name)
        return found
    if name.startswith("_"):  # never exported by a plugin
        raise AttributeError(f"module 'corejax' has no attribute {name!r}")
    found = plugins.manager().exported(name)
    if found is None:
        raise plugins.missing_name(name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    exported = {name.partition(".")[0] for name in plugins.manager().offered()}
    own = {n for n, value in globals().items() if not n.startswith("_") and not isinstance(value, type(_sys))}
    return sorted((own - {"annotations"}) | exported | {*_NAMESPACES, *_TRANSFORMS, "plugins"})
