"""`corejax.experimental.serialize_executable`: compiled programs as bytes, for processes on machines of the same kind.

The bytes are a JSON header, then the constants of the program, then XLA's executable.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import Array, ShapedArray, Tracer, as_array, backends, get_aval, tree
from corejax.extend.devices import Target
from corejax.extend.messages import api_boundary
from corejax_xla_backend import _jaxlib
from corejax_xla_backend._jit.callables import run_donating
from corejax_xla_backend._jit.stages import Compiled
from corejax_xla_backend._programs import run
from corejax_xla_backend._xla.executable import XlaExecutable

__all__ = ["LoadedProgram", "deserialize_and_load", "serialize"]

_FORMAT = "corejax executable 1"


def serialize(compiled: Compiled) -> tuple[bytes, Any, Any]:
    """Return a compiled program as bytes, and the structures of its arguments and its result.

    The same version of jaxlib loads the bytes, on the same kind of machine and device. `corejax.export` has programs
    for other machines.

    Args:
        compiled: the result of `jit(f).lower(...).compile()`, on one device.

    Returns:
        The bytes, the structure of `(args, kwargs)` and the structure of the result.

    Raises:
        TypeError: `compiled` is not a compiled program.
        ValueError: the program calls Python functions, uses references, runs on several devices, or has arguments or
            results of extended dtypes.
    """
    if not isinstance(compiled, Compiled):
        raise TypeError(
            f"serialize takes a compiled program, jit(f).lower(...).compile(), got {compiled!r} of type "
            f"{type(compiled).__name__}"
        )
    executable, program = compiled.runtime_executable(), compiled._program
    if not isinstance(executable, XlaExecutable) or not isinstance(executable.executable, _jaxlib.Executable):
        raise ValueError(f"serialize: {compiled.name} is not a program for one device; corejax.export stores others")
    if executable.callbacks:
        raise ValueError(f"serialize: {compiled.name} calls Python functions, which have no bytes")
    if program.cells:
        raise ValueError(f"serialize: {compiled.name} uses references; pass and return their values")
    in_avals, out_avals = list(compiled._argument_avals()), list(program.closed.out_avals)
    if any(a.dtype.names is not None for a in (*in_avals, *out_avals)):
        raise ValueError(f"serialize: {compiled.name} has arguments or results of extended dtypes, such as keys")
    consts = [np.asarray(x) for x in (*executable.consts, *compiled._consts)]
    header = {
        "format": _FORMAT,
        "name": executable.name,
        "platform": executable.executable.device.platform,
        "kept": list(executable.kept),
        "consts": [(x.shape, x.dtype.name) for x in consts],
        "in": [(a.shape, a.dtype.name, a.weak_type) for a in in_avals],
        "out": [(a.shape, a.dtype.name, a.weak_type) for a in out_avals],
        "donated": list(compiled._options.donated[len(compiled._consts) :]),
    }
    text = json.dumps(header).encode()
    parts = [len(text).to_bytes(8, "little"), text, *[x.tobytes() for x in consts], executable.executable.serialize()]
    return b"".join(parts), compiled.in_tree, compiled.out_tree


class LoadedProgram:
    """A compiled program that `deserialize_and_load` has loaded; call it with arrays of the compiled types.

    Attributes:
        name: the function's name.
        in_tree, out_tree: structure of `(args, kwargs)`, and of the result.
    """

    def __init__(
        self, header: Any, arrays: Sequence[Any], executable: Any, target: Target, in_tree: Any, out_tree: Any
    ):
        self.name: str = header["name"]
        self.in_tree, self.out_tree = in_tree, out_tree
        self._in_structure = in_tree
        if not isinstance(in_tree, tree.PyTreeDef):  # another library's: `jax.tree` has jaxlib's
            self._in_structure = tree.tree_structure(tree.tree_unflatten(in_tree, range(in_tree.num_leaves)))
        self._in_avals, self._out_avals = ([_type(x) for x in header[key]] for key in ("in", "out"))
        self._donated: list[bool] = header["donated"]
        self._consts = [as_array(x) for x in arrays]
        self._backend = target.backend
        self._executable = XlaExecutable(executable, tuple(header["kept"]), [], [], self.name, 0)

    @property
    def in_avals(self) -> Any:
        """Types of the arguments, `(args, kwargs)`."""
        return tree.tree_unflatten(self.in_tree, self._in_avals)

    @property
    def out_avals(self) -> Any:
        """Types of the result, in its structure."""
        return tree.tree_unflatten(self.out_tree, self._out_avals)

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program.

        Raises:
            TypeError: the arguments do not have the types that the program was compiled for.
        """
        if not any(self._donated):
            return self._run(*args, **kwargs)
        donated = [x for x, flag in zip(tree.tree_leaves((args, kwargs)), self._donated, strict=False) if flag]
        return run_donating(self._run, args, kwargs, donated, self.name)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        leaves, in_tree = tree.tree_flatten((args, kwargs))
        if in_tree != self._in_structure:
            raise TypeError(f"{self.name} was compiled for arguments of structure {self.in_tree}, got {in_tree}")
        for i, (x, aval) in enumerate(zip(leaves, self._in_avals, strict=True)):
            if isinstance(x, Tracer) or (get_aval(x).shape, get_aval(x).dtype) != (aval.shape, aval.dtype):
                raise TypeError(
                    f"{self.name} was compiled for {aval.str_short(short_dtypes=False)} as argument number {i}, got "
                    f"{x!r}"
                )
        arrays: list[Array] = [*self._consts, *map(as_array, leaves)]
        return tree.tree_unflatten(self.out_tree, run(self._executable, self._backend, arrays, self._out_avals))

    def as_text(self) -> str:
        """Return the text of the compiled program, optimised HLO."""
        return self._executable.as_text()

    def cost_analysis(self) -> dict[str, float]:
        """Return XLA's estimates for one run, by name."""
        return self._executable.cost_analysis()

    def runtime_executable(self) -> Any:
        """Return the backend's executable object."""
        return self._executable

    def __repr__(self) -> str:
        return f"<loaded program {self.name}>"


def deserialize_and_load(
    serialized: bytes, in_tree: Any, out_tree: Any, backend: str | None = None, execution_devices: Any = None
) -> LoadedProgram:
    """Load a program from the bytes of `serialize`.

    Load only bytes that you trust: they contain machine code.

    Args:
        serialized: the bytes.
        in_tree: the structure of the arguments, as `serialize` returned it.
        out_tree: the structure of the result, as `serialize` returned it.
        backend: name of the backend or platform, by default the platform that the program was compiled for.
        execution_devices: a sequence with the device, by default the platform's first one.

    Raises:
        ValueError: the bytes are not those of `serialize`, the program is for another platform, or there is more than
            one device.
    """
    header, start = _header(serialized)
    if execution_devices is not None and len(execution_devices) != 1:
        raise ValueError(f"deserialize_and_load: the program runs on one device, got {len(execution_devices)}")
    target = backends.find(backend or header["platform"])
    device: Any = (
        execution_devices[0] if execution_devices is not None else target.backend.default_device(target.platform)
    )
    if device.platform != header["platform"]:
        raise ValueError(
            f"deserialize_and_load: the program is for the platform {header['platform']!r}, not {device.platform!r}"
        )
    arrays = []
    for shape, name in header["consts"]:
        dtype, count = np.dtype(name), int(np.prod(shape, dtype=int))
        arrays.append(np.frombuffer(serialized, dtype, count, start).reshape(shape))
        start += count * dtype.itemsize
    executable = _jaxlib.load(serialized[start:], [_type(x) for x in header["out"]], device, name=header["name"])
    return LoadedProgram(
        header, arrays, executable, Target(backends.of_device(device), device.platform), in_tree, out_tree
    )


def _header(serialized: bytes) -> tuple[Any, int]:
    """Return the header of a serialized program, and where it ends."""
    try:
        end = 8 + int.from_bytes(serialized[:8], "little")
        header = json.loads(serialized[8:end])
        if header["format"] == _FORMAT:
            return header, end
    except (TypeError, ValueError, KeyError):
        pass
    raise ValueError("deserialize_and_load: these are not bytes that `serialize` of this version returned")


def _type(described: Any) -> ShapedArray:
    shape, dtype, weak_type = described
    return ShapedArray(tuple(shape), np.dtype(dtype), weak_type)
