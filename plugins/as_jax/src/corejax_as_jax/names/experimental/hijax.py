"""`jax.experimental.hijax`: named by Flax when it is imported."""

from typing import Any as _Any

from corejax import ShapedArray
from corejax.extend import is_undef_primal as is_undefined_primal
from corejax_as_jax.absent import absent_class as _absent_class
from corejax_as_jax.absent import no_op as register_hitype
from corejax_as_jax.core import AbstractValue
from corejax_as_jax.hijax import HiPrimitive, HiType, MutableHiType, control_flow_allowed_effects
from corejax_as_jax.zeros import Zero, instantiate_zeros

AbstractRef = _absent_class("AbstractRef")
AvalMutableQDD = _absent_class("AvalMutableQDD")
AvalQDD = _absent_class("AvalQDD")
TransformedRef = _absent_class("TransformedRef")
aval_property = property


def aval_method(function: _Any) -> _Any:
    """Return the function."""
    return function
