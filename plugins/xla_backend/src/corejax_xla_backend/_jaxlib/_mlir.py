"""MLIR: contexts with StableHLO, conversions between element types and NumPy dtypes, and modules.

Functions that create types or operations use MLIR's thread-local context: call them inside ``with context, location:``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from corejax_xla_backend._element_types import ELEMENT_TYPES

from ._interrupts import uninterrupted
from ._probe import core  # checks jaxlib's version before its MLIR is imported

with uninterrupted():
    from jaxlib.mlir import ir as ir
    from jaxlib.mlir._mlir_libs import _chlo, _jax_mlir_ext
    from jaxlib.mlir._mlir_libs import _stablehlo as _stablehlo
    from jaxlib.mlir.dialects import func as _func
    from jaxlib.mlir.passmanager import PassManager

COMPILE_ERRORS = (ir.MLIRError, RuntimeError)
"""The errors that MLIR raises for invalid module text, and XLA for a program that it cannot compile."""

func: Any = _func  # its classes are defined twice, and types show only the first definition
_ELEMENT_TYPES = ELEMENT_TYPES | {"float6_e2m3fn": "f6E2M3FN", "float6_e3m2fn": "f6E3M2FN"}


def _numpy_dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


_DTYPE_TO_TEXT: dict[np.dtype, str] = {_numpy_dtype(name): text for name, text in _ELEMENT_TYPES.items()}
_TEXT_TO_DTYPE: dict[str, np.dtype] = {text: dtype for dtype, text in _DTYPE_TO_TEXT.items()}

DTYPES: tuple[np.dtype, ...] = tuple(_DTYPE_TO_TEXT)
"""Every dtype that has an element type in StableHLO."""


@cache
def _dialect_registry() -> ir.DialectRegistry:
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    return registry


def new_context() -> ir.Context:
    """Return a context with func, StableHLO and CHLO loaded (0.3 ms); other dialects load when a text uses them."""
    context = ir.Context()
    context.append_dialect_registry(_dialect_registry())
    _ = context.dialects["func"]
    _stablehlo.register_dialect(context)
    _chlo.register_dialect(context)
    return context


def element_type(dtype: Any) -> ir.Type:
    """Return the MLIR element type of a NumPy dtype, in the current context.

    Raises:
        TypeError: StableHLO has no element type for the dtype.
    """
    canonical = np.dtype(dtype).newbyteorder("=")
    text = _DTYPE_TO_TEXT.get(canonical)
    if text is None:
        raise TypeError(f"dtype {canonical} has no element type in StableHLO.")
    return ir.Type.parse(text)


def dtype_of(mlir_type: ir.Type) -> np.dtype:
    """Return the NumPy dtype of an element type or a ranked tensor type; the inverse of :func:`element_type`."""
    text = str(ir.RankedTensorType(mlir_type).element_type if _is_tensor(mlir_type) else mlir_type)
    dtype = _TEXT_TO_DTYPE.get(text)
    if dtype is None:
        raise TypeError(f"the MLIR type {text} has no NumPy dtype.")
    return dtype


def _is_tensor(mlir_type: ir.Type) -> bool:
    return isinstance(mlir_type, ir.RankedTensorType) or str(mlir_type).startswith("tensor<")


def dense_attr(value: np.ndarray | np.generic) -> ir.Attribute:
    """Return an array as a dense attribute; an array of equal elements is stored as a single element."""
    array = np.asarray(value)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    contiguous: Any = np.ascontiguousarray(array).reshape(array.shape)  # ascontiguousarray lifts rank 0 to 1
    return ir.DenseElementsAttr.get(contiguous, type=element_type(array.dtype), shape=array.shape)


def parse_module(text: str | bytes) -> ir.Module:
    """Parse a module from its text or bytecode, in a new context."""
    with new_context() as current:
        if b"sdy." in text if isinstance(text, bytes) else "sdy." in text:
            _register_sdy(current)
        return ir.Module.parse(text)


def _register_sdy(context: ir.Context) -> None:
    """Load Shardy's dialect, which expresses the shardings of programs over several devices."""
    with uninterrupted():
        from jaxlib.mlir._mlir_libs import _sdy

    _sdy.register_dialect(context)


def module_text(module: ir.Module, *, debug_info: bool = False) -> str:
    """Return the text of a module in its dialects' notation, with locations if `debug_info` is set."""
    return text_of(module, enable_debug_info=debug_info)


def text_of(operation: ir.Module | ir.Operation | ir.OpView, **options: bool) -> str:
    """Return the text of a module or an operation, by the options of `get_asm`."""
    return str(operation.operation.get_asm(binary=False, **options))


def xla_computation(module: ir.Module) -> Any:
    """Convert a module to unoptimised HLO: jaxlib's object, with ``as_hlo_text()``."""
    return core.mlir.mlir_module_to_xla_computation(
        text_of(module, enable_debug_info=True, print_generic_op_form=True), False, False
    )


def run_passes(module: ir.Module, pipeline: str) -> None:
    """Rewrite ``module`` in place by a pass pipeline.

    An example of a pipeline is ``"builtin.module(func.func(chlo-legalize-to-stablehlo))"``.
    """
    _register_passes()
    with module.context:
        PassManager.parse(pipeline).run(module.operation)


@cache
def _register_passes() -> None:
    _stablehlo.register_stablehlo_passes()


def stablehlo_versions() -> tuple[str, str]:
    """Return the oldest version of StableHLO that this jaxlib reads, and the current version."""
    return _stablehlo.get_minimum_version(), _stablehlo.get_current_version()


def portable_version() -> str:
    """Return the newest version of StableHLO that every release of the last twelve weeks reads."""
    return _stablehlo.get_version_from_compatibility_requirement(_stablehlo.StablehloCompatibilityRequirement.WEEK_12)


def to_portable(module: ir.Module) -> bytes:
    """Serialize a copy of a module to StableHLO's portable bytes, a stable format, without locations.

    CHLO operations are lowered to StableHLO first. Shardy's operations are kept, although their format is not stable.

    Raises:
        ir.MLIRError or RuntimeError: the portable version lacks an operation of the module.
    """
    copy = clone(module)
    run_passes(copy, "builtin.module(func.func(chlo-legalize-to-stablehlo))")
    # The third argument allows other dialects; without it, jaxlib uses its default.
    mixed = (True,) if "sdy." in text_of(copy) else ()
    return _stablehlo.serialize_portable_artifact(copy, portable_version(), *mixed)


def from_portable(data: bytes) -> ir.Module:
    """Deserialize a module from the bytes of :func:`to_portable`."""
    with new_context() as current:
        if b"sdy" in data:
            _register_sdy(current)
            current.load_all_available_dialects()
        return _stablehlo.deserialize_portable_artifact(current, data)


def meshes_text(module: ir.Module) -> dict[str, str]:
    """Return the meshes that a module declares, as a dict from symbol (``@mesh``) to text (``<["x"=8]>``)."""
    lines = [text_of(op).strip() for op in module.body.operations if op.operation.name == "sdy.mesh"]
    pairs = [line.removeprefix("sdy.mesh ").split(" = ", 1) for line in lines]
    return {pair[0]: pair[1] for pair in pairs}


def functions_text(module: ir.Module, rename: Callable[[str], str]) -> list[str]:
    """Return the texts of a module's functions, all private and each self-contained, ``main`` first.

    Args:
        module: the module, which is modified.
        rename: function from an old name to the new name; called for ``main`` first.
    """
    unsorted = [op for op in module.body.operations if op.operation.name == "func.func"]
    functions = sorted(unsorted, key=lambda op: ir.StringAttr(op.attributes["sym_name"]).value != "main")
    with module.context:
        renamed = [(op, rename(ir.StringAttr(op.attributes["sym_name"]).value)) for op in functions]
        for step in ("{}_being_renamed", "{}"):  # in two steps, because a new name may be another function's old one
            for op, name in renamed:
                new = ir.StringAttr.get(step.format(name))
                old = ir.StringAttr(op.attributes["sym_name"])
                ir.SymbolTable.replace_all_symbol_uses(old.value, new.value, module.operation)
                ir.SymbolTable.set_symbol_name(op, new.value)
        for op, _ in renamed:
            op.attributes["sym_visibility"] = ir.StringAttr.get("private")
        return [text_of(op, use_local_scope=True) for op, _ in renamed]


def written_module(
    in_avals: Sequence[Any], out_avals: Sequence[Any], body: Callable[..., Sequence[ir.Value[Any]]]
) -> ir.Module:
    """Return a module with a function `main`, in a new context.

    Args:
        in_avals: types of the arguments, with `shape` and `dtype`.
        out_avals: types of the results.
        body: ``body(module, *arguments) -> results`` appends the operations of `main`.
    """
    with new_context() as current, ir.Location.unknown(current):
        _register_sdy(current)
        module = ir.Module.create()
        ins, outs = (
            [ir.RankedTensorType.get(a.shape, element_type(a.dtype)) for a in avals] for avals in (in_avals, out_avals)
        )
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("main", (ins, outs))
        with ir.InsertionPoint(main.add_entry_block()):
            func.ReturnOp(list(body(module, *main.arguments)))
        return module


def call_module(module: ir.Module, text: str, values: Sequence[ir.Value[Any]]) -> list[ir.Value[Any]]:
    """Add the functions of a module's text to ``module`` and call its ``main`` at the current insertion point."""
    taken = {
        ir.StringAttr(op.attributes["sym_name"]).value for op in module.body.operations if "sym_name" in op.attributes
    }

    def fresh(name: str) -> str:
        unused = next(n for i in range(len(taken) + 1) if (n := f"{name}_{i}") not in taken)
        taken.add(unused)
        return unused

    functions = functions_text(ir.Module.parse(text, module.context), fresh)
    parsed = ir.Module.parse("\n".join(functions), module.context)
    added = [operation.operation.clone(ir.InsertionPoint(module.body)) for operation in parsed.body.operations]
    return list(func.CallOp(added[0].opview, list(values)).results)


def clone(module: ir.Module) -> ir.Module:
    """Return a copy of a module, in the same context."""
    return ir.Module.parse(text_of(module, print_generic_op_form=True), module.context)
