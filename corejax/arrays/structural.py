"""`structural`, the table of the few array operations that interpreters themselves need, supplied by a plugin.

`vmap` moves and adds axes, differentiation adds cotangents and creates zeros, `jacobian` reshapes. The kernel has no
primitives, so it calls operations of an `OperationTable` that a plugin fills (hook `corejax_provide_operations`).
Without a plugin, the operations work on concrete values, by NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.arrays.array import Array, Value, as_array, host_value
from corejax.base.plugin_access import plugin_access
from corejax.base.provenance import Provenance
from corejax.base.tables import Table
from corejax.core.avals import FlatFun, Operands, ShapedArray, get_aval
from corejax.core.trace import Tracer
from corejax.errors import PluginMissingError
from corejax.messages.homes import homes, install_advice

Operation = Callable[..., Value]


def _array(value: Any, aval: ShapedArray) -> Array:
    return Array(np.asarray(value, dtype=aval.dtype), aval.update(shape=np.shape(value)))


def _known(x: object) -> Any:
    """Return the value of an operand, for results that may be views of it; copy NumPy arrays, which may be modified."""
    return host_value(as_array(x))


def _broadcast_axis(x: object, size: int, axis: int) -> Array:
    value = np.expand_dims(_known(x), axis)
    shape = (*value.shape[:axis], size, *value.shape[axis + 1 :])
    return _array(np.broadcast_to(value, shape), get_aval(x))


def unrolled_loop(f: FlatFun, axis_size: int, xs: Operands) -> list[Value]:
    """Apply `f` to one element after the other, as `loop` does in one loop."""
    rows = [f(*(structural.index_axis(x, i, 0) for x in xs)) for i in range(axis_size)]
    return [structural.stack(list(column), 0) for column in zip(*rows, strict=True)]


_ON_CONCRETE: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: _array(np.add(host_value(x), host_value(y)), get_aval(x)),
    "zeros": lambda aval: Array(np.broadcast_to(np.zeros((), aval.dtype), aval.shape), aval),
    "broadcast_axis": _broadcast_axis,
    "move_axis": lambda x, source, to: _array(np.moveaxis(_known(x), source, to), get_aval(x)),
    "reshape": lambda x, shape: _array(np.reshape(_known(x), shape), get_aval(x)),
    "astype": lambda x, dtype: _array(_known(x), get_aval(x).update(dtype=dtype, weak_type=False)),
    "index_axis": lambda x, i, axis: _array(np.moveaxis(_known(x), axis, 0)[i, ...], get_aval(x)),
    "stack": lambda xs, axis: _array(np.stack([host_value(x) for x in xs], axis), get_aval(xs[0])),
    "loop": unrolled_loop,
}


class OperationTable:
    """The operations that interpreters need, by name; one plugin provides each.

    Operations:
        add(x, y): the sum of two values of one aval (accumulates cotangents).
        zeros(aval): zeros of that aval.
        broadcast_axis(x, size, axis): `size` copies of `x` along a new axis at position `axis`.
        move_axis(x, source, destination): `x` with one axis at another position.
        reshape(x, shape): the same elements in row-major order.
        astype(x, dtype): the elements converted to a dtype.
        index_axis(x, i, axis): the part at position `i` (an int within bounds) of one axis, without that axis.
        stack(xs, axis): at least one value, all of one aval, joined along a new axis.
        loop(f, axis_size, xs): `f` applied to each element of `xs` along the first axes, of size 1 or more; the list
            of its results, each stacked along a new first axis.
    """

    loop: Callable[..., list[Value]]

    def __init__(self) -> None:
        self.table: Table[str, Operation] = Table(
            "structural operation",
            changed=self._put,
            refusal=lambda name, earlier, later: (
                f"structural operation {name!r} is supplied by {earlier.provenance}; "
                f"{later.provenance} supplies a second one"
            ),
            of_hooks=True,
        )

    def provide(self, name: str, operation: Operation, *, override: bool = False, by: Provenance | None = None) -> None:
        """Supply an operation; `by` is its provenance, by default the caller.

        Raises:
            KeyError: the kernel uses no operation of that name.
            DuplicateRegistrationError: another owner supplies it and `override` is False.
        """
        if name not in _ON_CONCRETE:
            raise KeyError(f"no structural operation is named {name!r}; there are {sorted(_ON_CONCRETE)}")
        self.table.register(name, operation, override=override, provenance=Provenance.of(operation, by))

    def _put(self, name: str, operation: Operation | None) -> None:
        if operation is None:
            vars(self).pop(name, None)
        else:
            setattr(self, name, operation)

    def __getattr__(self, name: str) -> Operation:
        if name.startswith("_") or name not in _ON_CONCRETE:
            raise AttributeError(name)
        plugin_access().load(homes("operations").values())
        if name in self.table:
            return self.table[name]
        if name == "loop":  # works on tracers as well if a plugin supplies `index_axis` and `stack`
            return unrolled_loop  # type: ignore[return-value]  # `loop` has a type of its own
        return lambda *args: self._without_plugin(name, args)

    def _without_plugin(self, name: str, args: tuple[object, ...]) -> Any:
        if any(isinstance(x, Tracer) for each in args for x in (each if isinstance(each, list | tuple) else (each,))):
            raise PluginMissingError(
                f"a transformation needs the operation {name!r} on a traced value and no plugin supplies it"
                + install_advice("operations", name)
            )
        return _ON_CONCRETE[name](*args)


structural = OperationTable()
