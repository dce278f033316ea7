"""The hooks that the plugin implements. Discovery imports this module, so it imports nothing else."""

from __future__ import annotations

from collections.abc import Mapping

from corejax.extend import hookimpl


@hookimpl
def corejax_export_namespaces() -> Mapping[str, str]:
    """Export `corejax.numpy` and the smaller namespaces beside it."""
    names = ("dlpack", "flatten_util", "image", "nn", "numpy", "ops")
    return {name: f"corejax_numpy.{name}" for name in names}


@hookimpl
def corejax_provide_array_methods() -> Mapping[str, str]:
    """Provide functions of `corejax.numpy` as array methods; those of `methods` have their own signatures."""
    functions = {name: f"corejax_numpy.numpy:{name}" for name in _FUNCTIONS.split()}
    own = dict.fromkeys(_OWN_SIGNATURES.split(), "corejax_numpy.methods:METHODS")
    bits = {name: f"corejax_numpy.bits:{name}" for name in ("byteswap", "view")}
    return {**functions, **own, **bits, "flatten": "corejax_numpy.numpy:ravel"}


_FUNCTIONS = """
    all any argmax argmin argpartition argsort choose cumprod cumsum diagonal dot max mean min prod ptp ravel repeat
    searchsorted sort squeeze sum swapaxes take trace
"""
_OWN_SIGNATURES = "__array_namespace__ __round__ clip compress nonzero round std var"
