# The kernel's own exports; plugins add names, such as `corejax.jit` and `corejax.numpy`.
from typing import TYPE_CHECKING

from corejax._contributed import *  # written by `corejax write-stubs`
from corejax.arrays.array import Array as Array
from corejax.core.avals import ShapedArray as ShapedArray
from corejax.core.avals import typeof as typeof
from corejax.core.trace import Tracer as Tracer
from corejax.ir import ClosedJaxpr as ClosedJaxpr
from corejax.ir import Jaxpr as Jaxpr
from corejax.ir import eval_jaxpr as eval_jaxpr
from corejax.settings.caches import clear_caches as clear_caches
from corejax.settings.config import config as config
from corejax.transforms.autodiff import linear_transpose as linear_transpose
from corejax.transforms.flattening import ShapeDtypeStruct as ShapeDtypeStruct
from corejax.transforms.flattening import float0 as float0
from corejax.transforms.tracing import eval_shape as eval_shape
from corejax.transforms.vmapping import vmap as vmap

from . import core as core
from . import dtypes as dtypes
from . import errors as errors
from . import extend as extend
from . import ir as ir
from . import plugins as plugins
from . import tree as tree
from . import tree_util as tree_util
from . import typing as typing

if TYPE_CHECKING:
    from corejax._transforms import *  # their overloads, written by `corejax write-stubs`
else:
    from corejax.transforms.autodiff import jvp as jvp
    from corejax.transforms.autodiff import linearize as linearize
    from corejax.transforms.autodiff import vjp as vjp
    from corejax.transforms.gradients import grad as grad
    from corejax.transforms.gradients import value_and_grad as value_and_grad
    from corejax.transforms.tracing import make_jaxpr as make_jaxpr

__version__: str

def __dir__() -> list[str]: ...
