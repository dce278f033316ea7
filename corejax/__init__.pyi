# What the kernel itself exports; plugins add names, such as `corejax.jit` and `corejax.numpy`.
from corejax._contributed import *  # written by `corejax write-stubs`
from corejax.core.array import Array as Array
from corejax.core.avals import ShapedArray as ShapedArray
from corejax.core.avals import typeof as typeof
from corejax.core.trace import Tracer as Tracer
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

from . import core as core
from . import dtypes as dtypes
from . import errors as errors
from . import extend as extend
from . import ir as ir
from . import plugins as plugins
from . import tree as tree
from . import tree_util as tree_util
from . import typing as typing

__version__: str

def __dir__() -> list[str]: ...
