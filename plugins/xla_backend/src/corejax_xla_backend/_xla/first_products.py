"""Machine code of matrix products, made while the first program that needs it is compiled.

On CPUs oneDNN computes products whose first operand is transposed, as gradients have them, and convolutions. It
generates the code for them when the first one runs, in 20 to 30 ms. So a small one is run by a thread of its own
meanwhile.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from corejax.extend import Jaxpr, JaxprEqn, ShapedArray, subjaxprs
from corejax_xla_backend import _jaxlib

_SMALL = 64  # elements of a first operand up to which XLA writes loops
_NARROW = ("float32", "float16", "bfloat16")
_TYPE = ShapedArray((16, 16), np.dtype(np.float32))
_PRODUCT = """\
module @first_product {
  func.func public @main(%0: tensor<16x16xf32>) -> tensor<16x16xf32> {
    %1 = stablehlo.dot_general %0, %0, contracting_dims = [0] x [0]
        : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    return %1 : tensor<16x16xf32>
  }
}
"""
_begun = False


def prepare(jaxpr: Jaxpr, device: Any) -> None:
    """Have the code made, unless it has been, or the program does not need it, or there is one core.

    Args:
        jaxpr: the program that is to be compiled.
        device: that it is compiled for.
    """
    global _begun
    if _begun or device.platform != "cpu" or _jaxlib.is_absent(device) or _cores() < 2 or not needs_products(jaxpr):
        return
    _begun = True
    # A daemon: a process that ends waits for it no longer than for what it is just doing (see `_jaxlib._exit`).
    thread = threading.Thread(target=_multiply, args=(device,), name="corejax-products", daemon=True)
    with suppress(RuntimeError):  # there are no more threads, or Python ends: the first product takes its time
        thread.start()


def needs_products(jaxpr: Jaxpr) -> bool:
    """Whether a program has convolutions, or products of float32 or less whose first operand is transposed."""
    products = []
    turned = False
    for eqn in _equations(jaxpr):
        name = eqn.primitive.name
        if name == "conv_general_dilated":
            return True
        turned |= name == "transpose"
        if name == "dot_general":
            products.append(eqn)
    return any(_is_turned(eqn, turned) for eqn in products)


def _is_turned(eqn: JaxprEqn, by_transposes: bool) -> bool:
    aval = eqn.invars[0].aval
    summed = eqn.params["dimension_numbers"][0][0]
    if aval.dtype.name not in _NARROW or math.prod(aval.shape) < _SMALL or not summed:
        return False
    return by_transposes or aval.ndim - 1 not in summed


def _equations(jaxpr: Jaxpr) -> Iterator[JaxprEqn]:
    """Those of programs in it included."""
    for eqn in jaxpr.eqns:
        yield eqn
        for program in subjaxprs(eqn.params):
            yield from _equations(getattr(program, "jaxpr", program))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _multiply(device: Any) -> None:
    try:
        executable = _jaxlib.compile_module(_jaxlib.parse_module(_PRODUCT), (_TYPE,), device)
        operand = _jaxlib.put(np.ones(_TYPE.shape, _TYPE.dtype), _TYPE, device)
        _jaxlib.block_until_ready(executable(operand))
    except Exception:  # what is wrong with the device the program itself will say
        pass
