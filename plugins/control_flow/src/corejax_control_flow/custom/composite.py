"""`composite`: an operation with a name that a compiler may recognise, and a decomposition for other compilers.

    composite : a -> b        given a program a -> b, its decomposition

Transformations inline the decomposition: a batched or differentiated composite is another operation, without a name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Primitive, Tracer, defcall, fun_name, get_aval, inlining, tree
from corejax.extend.messages import api_boundary
from corejax_control_flow.programs.tracing import flatten_operands, trace, with_common_consts

composite_p = Primitive(
    "composite",
    multiple_results=True,
    tags=("higher_order",),
    decomposition=inlining("jaxpr"),
    doc="Apply a named operation that a compiler may recognise. Params: jaxpr (decomposition), name, version, "
    "attributes.",
)
defcall(
    composite_p, "jaxpr", inline=("jvp", "vmap", "transpose", "known", "unknown"), without=("xla_translation", "dce")
)


def composite(decomposition: Callable[..., Any], name: str, version: int = 0) -> Callable[..., Any]:
    """Give a function a name by which a compiler may recognise it (StableHLO `composite`).

        @functools.partial(corejax.lax.composite, name="acme.softmax")
        def softmax(x, /, *, axis):
            return corejax.nn.softmax(x, axis)

    Args:
        decomposition: the function, which defines the operation in terms of others. Positional arguments are operands;
            keyword arguments are static attributes of the operation: numbers, strings, dtypes, NumPy arrays, sequences
            of these. An attribute that is None is omitted.
        name: name of the operation, with a namespace.
        version: version of the operation's semantics.

    Returns:
        A function with the same arguments.

    Raises:
        TypeError: if the decomposition closes over traced values, or an attribute is traced or of another type.
    """
    if not isinstance(name, str) or not name:
        raise TypeError(f"composite of {fun_name(decomposition)}: its name must be a non-empty string, got {name!r}")

    @api_boundary
    @functools.wraps(decomposition)
    def call(*args: Any, **kwargs: Any) -> Any:
        attributes = tuple((k, _attribute(name, k, v)) for k, v in sorted(kwargs.items()) if v is not None)
        leaves, in_tree = flatten_operands("composite", decomposition, args)
        fun = functools.partial(decomposition, **kwargs) if kwargs else decomposition
        traced = trace("composite", fun, in_tree, [get_aval(x) for x in leaves])
        if any(isinstance(c, Tracer) for c in traced.consts):
            raise TypeError(
                f"composite {name!r}: its decomposition {fun_name(decomposition)} closes over a traced value; values "
                "that are not known at compile time must be arguments"
            )
        (program,), consts = with_common_consts([traced])
        outs = composite_p.bind(*consts, *leaves, attributes=attributes, jaxpr=program, name=name, version=int(version))
        return tree.tree_unflatten(traced.out_tree, outs)

    return call


def _attribute(name: str, key: str, value: Any) -> Any:
    """Convert an attribute to a hashable parameter: an array becomes its dtype, shape and elements."""
    if isinstance(value, Tracer):
        raise TypeError(f"composite {name!r}: attribute {key!r} must be static, got {value!r}; pass it by position")
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, tuple(value.ravel().tolist())
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple | list):
        return tuple(_attribute(name, key, v) for v in value)
    if isinstance(value, bool | int | float | str | np.dtype):
        return value
    if isinstance(value, type) and issubclass(value, np.generic):
        return np.dtype(value)
    raise TypeError(
        f"composite {name!r}: attribute {key!r} must be a number, a string, a dtype, a NumPy array or a sequence of "
        f"these; got {value!r} of type {type(value).__name__}"
    )
