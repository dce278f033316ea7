"""Example applications of the plugin's primitives, for checks of their rules (`corejax verify xla_backend`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Example, ShapedArray, backends, stage_closed, tree
from corejax_xla_backend._jit.jit import jit
from corejax_xla_backend.callbacks.host_function import HostFunction, host_function
from corejax_xla_backend.sharding import SingleDeviceSharding


def examples_of(primitive: str) -> list[Example]:
    """Return example applications of a primitive; an empty list if the plugin has no primitive of the name."""
    makers = {
        "call_exported": _exported,
        "call_exported_tangent": _tangents,
        "debug_callback": _debugging,
        "dim_as_value": _sizes,
        "effectful_call_exported": _with_effects,
        "effectful_ffi_call": _kernels,
        "ffi_call": _kernels,
        "inspect_sharding": _inspecting,
        "io_callback": _effectful,
        "ordered_debug_callback": _debugging,
        "ordered_io_callback": _ordered,
        "platform_index": _platform,
        "pure_callback": _pure,
        "sharding_constraint": _constraints,
        "xla_call": _calls,
    }
    return makers[primitive]() if primitive in makers else []


def _calls() -> list[Example]:
    x = ShapedArray((3,), np.dtype(np.float32))

    def product(a: Any, b: Any) -> list[Any]:
        return list(jit(lambda a, b: (a * b * b, b))(a, b))

    def nested(a: Any, b: Any) -> list[Any]:
        return [jit(lambda a, b: jit(lambda c: c * c)(a) + b)(a, b)]

    equations = [stage_closed(fun, [x, x]).jaxpr.eqns[-1] for fun in (product, nested)]
    return [Example(tuple(atom.aval for atom in eqn.invars), eqn.params) for eqn in equations]


def _constraints() -> list[Example]:
    sharding = SingleDeviceSharding(backends.find("xla").backend.default_device())
    return [Example((np.arange(6, dtype=np.float32).reshape(2, 3) / 4,), {"sharding": sharding})]


def _kernels() -> list[Example]:
    """Return a call of a kernel that is always present: the Cholesky factorisation of jaxlib's LAPACK."""
    from corejax_xla_backend import _jaxlib

    _jaxlib.register_lapack()
    matrix = np.array([[4, 1, 0.5], [1, 3, 0], [0.5, 0, 2]], np.float32)
    types = (ShapedArray((3, 3), np.dtype(np.float32)), ShapedArray((), np.dtype(np.int32)))
    params = {
        "target": "lapack_spotrf_ffi",
        "in_types": types[:1],
        "out_types": types,
        "attributes": (("uplo", np.uint8(ord("L"))),),
        "vmap_method": "sequential",
        "batch_dims": 0,
    }
    return [Example((matrix,), params)]


_SKIPPED = {"stablehlo": "StableHLO's interpreter does not call back, and ends its process"}
_X = ShapedArray((2, 3), np.dtype(np.float32))


def _tabulated(x: Any, *, by: Any) -> Any:
    """Return a table that depends on the operand; it accepts any dtype, because checks change operand types."""
    return {
        "x": np.float32(by) + np.arange(6, dtype=np.float32).reshape(_X.shape) * (np.asarray(x) > 0).sum(dtype="f4")
    }


def _called(api: str) -> tuple[Any, dict[str, Any]]:
    """Return operands and parameters of a callback through an API such as "pure_callback"."""
    operands = (_X, ShapedArray((), np.dtype(np.int32)))
    types = {"x": _X}
    callback, _, out_types = host_function(api, _tabulated, types, (np.zeros(_X.shape, _X.dtype),), {"by": np.int32(1)})
    return operands, {"callback": callback, "out_types": out_types}


def _pure() -> list[Example]:
    operands, params = _called("pure_callback")
    methods = ("sequential", "sequential_unrolled")
    return [Example(operands, {**params, "vmap_method": method}, skip=_SKIPPED) for method in methods]


def _effectful() -> list[Example]:
    return [Example(*_called("io_callback"), skip=_SKIPPED)]


def _ordered() -> list[Example]:
    batching = (
        "weak_results programs repeatable untouched vmap nested_vmap indices zero_size effects pairs triples cost"
    )
    return [Example(*_called("io_callback"), skip=_SKIPPED | dict.fromkeys(batching.split(), "it refuses batches"))]


def _debugging() -> list[Example]:
    callback, _, _ = host_function("debug.callback", _tabulated, None, (np.zeros(_X.shape, _X.dtype),), {"by": 1})
    operands = (_X, ShapedArray((), np.dtype(np.int32)))
    params = {"callback": HostFunction("debug.callback", _tabulated, callback.in_tree), "partitioned": False}
    return [Example(operands, params, skip=_SKIPPED)]


def _inspecting() -> list[Example]:
    structure = tree.tree_structure(((0,), {}))
    return [Example((_X,), {"callback": HostFunction("debug.callback", repr, structure)}, skip=_SKIPPED)]


_SYMBOL = "a symbolic size has no value before a call determines it"
_EVALUATING = ("types", "values", "pure", "repeatable", "partial_eval", "splits", "xla", "pairs", "cost", "jax")

_OPAQUE = {"text": "an exported function does not print as text that parses"}


def _function() -> Any:
    """Return an exported function; its second result has no derivative."""
    from corejax_xla_backend.export.exporting import export

    x = ShapedArray((3,), np.dtype(np.float32))

    def powers(a: Any, b: Any) -> tuple[Any, Any]:
        return a * a * b * b * b, b > a

    return export(jit(powers))(x, x)


def _exported() -> list[Example]:
    exported = _function()
    return [Example(exported.in_avals, {"exported": exported}, skip=_OPAQUE)]


def _with_effects() -> list[Example]:
    """Return a call of the exported function, marked as having an effect."""
    exported = _function()
    exported.unordered_effects = ("example",)
    return [Example(exported.in_avals, {"exported": exported}, skip=_OPAQUE)]


def _tangents() -> list[Example]:
    exported = _function()
    a, b = exported.in_avals
    return [Example((a, b, b), {"exported": exported, "nonzero": (False, True)}, skip=_OPAQUE)]


def _sizes() -> list[Example]:
    from corejax_xla_backend.export.shapes import symbolic_shape

    (size,) = symbolic_shape("2*b + 1")
    return [Example((), {"dim": size, "dtype": np.dtype(np.int32)}, skip=_OPAQUE | dict.fromkeys(_EVALUATING, _SYMBOL))]


def _platform() -> list[Example]:
    return [Example((), {"platforms": ("cuda",), "has_default": True})]
