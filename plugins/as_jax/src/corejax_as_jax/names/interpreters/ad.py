"""`jax.interpreters.ad`."""

from typing import Any as _Any

from corejax.extend import UndefPrimal as UndefinedPrimal
from corejax.extend import is_undef_primal as is_undefined_primal
from corejax.extend.transforms import JVPTrace, JVPTracer
from corejax_as_jax.primitives import primitive_of_name as _primitive_of_name
from corejax_as_jax.rules import (
    defjvp,
    defjvp2,
    deflinear,
    deflinear2,
    get_primitive_transpose,
    primitive_jvps,
    primitive_transposes,
)
from corejax_as_jax.zeros import Zero, add_tangents, instantiate_zeros, zeros_like_aval

add_jaxvals = add_tangents


def __getattr__(name: str) -> _Any:
    return _primitive_of_name("add_p" if name in ("add_jaxvals_p", "add_any_p") else name)
