"""Call programs with the arrays of other libraries, on the CPU and without corejax arrays.

Arguments are NumPy arrays, results are capsules of DLPack, and both share the memory of the other library's arrays if
possible. jaxlib's dispatcher finds the compiled program by the types of the arguments, so that a call needs no further
lookup in Python. Such a call takes half of the time of a call of `jit`, which makes corejax arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.extend import ClosedJaxpr, ShapedArray
from corejax_xla_backend import _jaxlib
from corejax_xla_backend._parts import flat_program
from corejax_xla_backend._xla.backend import XLA
from corejax_xla_backend._xla.dispatch import dispatch_registry
from corejax_xla_backend._xla.executable import XlaExecutable


def host_function(
    stage: Callable[[tuple[ShapedArray, ...]], ClosedJaxpr], name: str, from_dlpack: Callable[[Any], Any]
) -> Callable[[Sequence[np.ndarray[Any, Any]]], list[Any]]:
    """Return a function that runs programs on the CPU, one for each signature.

    The function has read its arguments when it returns, so that their owners may write to them.

    Args:
        stage: returns the program for types of arguments. It is called once for each signature.
        name: the name of the programs.
        from_dlpack: makes the other library's array from a capsule of DLPack, of which it owns the memory.

    Returns:
        A function from NumPy arrays to the results as arrays of the other library.
    """
    programs: dict[tuple[ShapedArray, ...], XlaExecutable] = {}
    device = XLA.default_device("cpu")

    def miss(*arguments: Any) -> tuple[Any, Any]:
        avals = _types(arguments)
        program = programs.get(avals)
        if program is None:
            closed = flat_program(stage(avals))
            program = programs[avals] = XLA.compile(closed, name=name, platform="cpu")
        # Programs with callbacks or of much memory need the checks of `run`.
        if not program.callbacks and program.nbytes <= _jaxlib.LARGE:
            return _jaxlib.STORED, _jaxlib.bare_fastpath_data(program.executable, program.kept, program.consts)
        return program.run([to_buffer(x) for x in arguments]), None

    def to_buffer(x: Any) -> Any:
        return _jaxlib.put(x, ShapedArray(x.shape, x.dtype), device, alias=True) if isinstance(x, np.ndarray) else x

    dispatch, stored, to_capsule = _jaxlib.bare_dispatch(name, miss), _jaxlib.STORED, _jaxlib.dlpack_of

    def call(arrays: Sequence[np.ndarray[Any, Any]]) -> list[Any]:
        if dispatch_registry.makes_buffers:  # with jax's settings, C++ would narrow arrays of 64 bits
            arrays = [x if x.itemsize < 8 else to_buffer(x) for x in arrays]
        outs = dispatch(*arrays)
        if outs is stored:
            outs = dispatch(*arrays)
            if outs is stored:  # jax.disable_jit() is active
                outs = programs[_types(arrays)].run([to_buffer(x) for x in arrays])
        return [from_dlpack(to_capsule(y)) for y in outs]

    return call


def _types(arguments: Sequence[Any]) -> tuple[ShapedArray, ...]:
    """Return the types of NumPy arrays and buffers."""
    return tuple([ShapedArray(x.shape, x.dtype) if isinstance(x, np.ndarray) else x.aval for x in arguments])
