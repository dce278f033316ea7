"""The StableHLO reference interpreter, which computes a program's results without XLA.

The interpreter is slow and simple, follows StableHLO's specification closely, and comes with jaxlib: an oracle for
translation rules. It returns results as MLIR attributes, which Python can read only for some element types (reading
a complex attribute aborts the process). So the program is wrapped in a ``main`` with readable results: the bits of
small floats, wider integers for those narrower than a byte, real and imaginary parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax_xla_backend._element_types import readable_as

from ._mlir import (
    _stablehlo,
    clone,
    dense_attr,
    dtype_of,
    element_type,
    func,
    ir,
    parse_module,
    run_passes,
)

_ENTRY = "main"
_INNER = "corejax_reference_main"


def reference_eval(module: ir.Module | str | bytes, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Evaluate ``main`` of a module with StableHLO's reference interpreter.

    Args:
        module: StableHLO (and CHLO) as a module, text or bytecode; not modified.
        arguments: an array for each argument of ``main``, of exactly its shape and dtype.

    Returns:
        A new array for each result, of the result's dtype.

    Raises:
        TypeError: the arguments do not match the types of ``main``.
        RuntimeError: the interpreter does not implement an operation (custom calls, for example).
    """
    copy = parse_module(module) if isinstance(module, (str, bytes)) else clone(module)
    with copy.context, ir.Location.unknown(copy.context):
        run_passes(copy, "builtin.module(func.func(chlo-legalize-to-stablehlo))")
        inner: Any = ir.SymbolTable(copy.operation)[_ENTRY]  # a `func.FuncOp`
        kind = ir.FunctionType(inner.type)
        _check(arguments, kind.inputs)
        ir.SymbolTable.set_symbol_name(inner, _INNER)
        inner.attributes["sym_visibility"] = ir.StringAttr.get("private")
        for use in ("arg_attrs", "res_attrs"):  # the interpreter ignores aliasing and sharding
            if use in inner.attributes:
                del inner.attributes[use]
        _add_entry(copy, kind)
        _copy_scatter_operands(copy)
        parts = _stablehlo.eval_module(copy, [dense_attr(np.asarray(each)) for each in arguments])
        return _assemble([np.array(part) for part in parts], [dtype_of(each) for each in kind.results])


def _check(arguments: Sequence[np.ndarray], inputs: Sequence[ir.Type]) -> None:
    found = [str(ir.RankedTensorType.get(np.shape(a), element_type(np.asarray(a).dtype))) for a in arguments]
    wanted = [str(each) for each in inputs]
    if found != wanted:
        raise TypeError(f"main takes ({', '.join(wanted)}), but was given ({', '.join(found)}).")


def _readable(dtype: np.dtype) -> list[tuple[str, np.dtype]]:
    """Return the operations that express a value in readable types, each with its result dtype."""
    if dtype.kind == "c":
        half = np.dtype(f"f{dtype.itemsize // 2}")
        return [("stablehlo.real", half), ("stablehlo.imag", half)]
    readable = readable_as(dtype)
    return [] if readable is None else [(f"stablehlo.{readable[0]}", readable[1])]


def _add_entry(module: ir.Module, kind: ir.FunctionType) -> None:
    """Add a public ``main`` that calls the renamed function and makes its results readable."""
    plan: list[tuple[int, str, ir.Type]] = []
    for index, result in enumerate(kind.results):
        shape = ir.RankedTensorType(result).shape
        parts = [
            (index, operation, ir.RankedTensorType.get(shape, element_type(dtype)))
            for operation, dtype in _readable(dtype_of(result))
        ]
        plan += parts or [(index, "", result)]
    signature = ir.FunctionType.get(list(kind.inputs), [mlir_type for _, _, mlir_type in plan])
    with ir.InsertionPoint(module.body):
        entry = func.FuncOp(_ENTRY, signature)
    block = entry.add_entry_block()
    with ir.InsertionPoint(block):
        callee: dict[str, ir.Attribute] = {"callee": ir.FlatSymbolRefAttr.get(_INNER)}
        inner = ir.Operation.create("func.call", list(kind.results), list(block.arguments), callee).results
        outputs = [
            ir.Operation.create(operation, [mlir_type], [inner[index]]).result if operation else inner[index]
            for index, operation, mlir_type in plan
        ]
        func.ReturnOp(outputs)


def _copy_scatter_operands(module: ir.Module) -> None:
    """Copy the operands of each scatter, because the interpreter's scatter overwrites them.

    A reshape to the same shape makes the copy: the interpreter's reshape always creates a new tensor.
    """
    scatters: list[ir.Operation] = []

    def note(op: ir.Operation) -> ir.WalkResult:
        if op.name == "stablehlo.scatter":
            scatters.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(note)
    for op in scatters:
        with ir.InsertionPoint(op):
            for i in range((len(op.operands) - 1) // 2):
                x = op.operands[i]
                op.operands[i] = ir.Operation.create("stablehlo.reshape", [x.type], [x]).result


def _assemble(parts: Sequence[np.ndarray], dtypes: Sequence[np.dtype]) -> list[np.ndarray]:
    """Rebuild the results from their readable parts; the inverse of :func:`_readable`."""
    remaining = iter(parts)
    outputs = []
    for dtype in dtypes:
        how = _readable(dtype)
        part = next(remaining)
        if len(how) == 2:
            whole = np.empty(part.shape, dtype)
            whole.real, whole.imag = part, next(remaining)
            outputs.append(whole)
        elif how and how[0][0] == "stablehlo.bitcast_convert":
            outputs.append(part.view(dtype))
        else:
            outputs.append(part.astype(dtype, copy=False))
    return outputs
