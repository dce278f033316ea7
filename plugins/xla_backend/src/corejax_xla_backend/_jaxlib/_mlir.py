"""MLIR: contexts with StableHLO, types from and to NumPy dtypes, modules.

Functions here use MLIR's own thread-local context: call them inside ``with context, location:``.
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
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _chlo, _jax_mlir_ext, _stablehlo
    from jaxlib.mlir.dialects import func as func
    from jaxlib.mlir.passmanager import PassManager

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
    """A context with func, StableHLO and CHLO loaded (0.3 ms); other dialects load when text names them."""
    context = ir.Context()
    context.append_dialect_registry(_dialect_registry())
    _ = context.dialects["func"]
    _stablehlo.register_dialect(context)
    _chlo.register_dialect(context)
    return context


def element_type(dtype: Any) -> ir.Type:
    """The MLIR element type of a NumPy dtype, in the current context.

    Raises:
        TypeError: StableHLO has no such type.
    """
    canonical = np.dtype(dtype).newbyteorder("=")
    text = _DTYPE_TO_TEXT.get(canonical)
    if text is None:
        raise TypeError(f"dtype {canonical} has no element type in StableHLO.")
    return ir.Type.parse(text)


def dtype_of(mlir_type: ir.Type) -> np.dtype:
    """The NumPy dtype of an element type, a ranked tensor type, or a value of one; inverse of
    :func:`element_type`.
    """
    text = str(ir.RankedTensorType(mlir_type).element_type if _is_tensor(mlir_type) else mlir_type)
    dtype = _TEXT_TO_DTYPE.get(text)
    if dtype is None:
        raise TypeError(f"the MLIR type {text} has no NumPy dtype.")
    return dtype


def readable_as(dtype: np.dtype) -> tuple[str, np.dtype] | None:
    """Return the StableHLO operation that gives a type which Python can read, and that type; None if it reads `dtype`.

    The same bits as unsigned integers; for types below a byte, which NumPy keeps one to a byte, the same values.
    """
    if dtype.name == "bfloat16" or dtype.name.startswith("float8"):
        return "bitcast_convert", np.dtype(f"u{dtype.itemsize}")
    if dtype.name in ("int2", "int4"):
        return "convert", np.dtype(np.int8)
    if dtype.name in ("uint2", "uint4"):
        return "convert", np.dtype(np.uint8)
    if dtype.name.startswith(("float4_", "float6_")):
        return "convert", np.dtype(np.float32)
    return None


def _is_tensor(mlir_type: ir.Type) -> bool:
    return isinstance(mlir_type, ir.RankedTensorType) or str(mlir_type).startswith("tensor<")


def dense_attr(value: np.ndarray | np.generic) -> ir.Attribute:
    """An array as a dense attribute; one whose elements are all the same bytes is stored as one element."""
    array = np.asarray(value)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    contiguous = np.ascontiguousarray(array).reshape(array.shape)  # ascontiguousarray lifts rank 0 to 1
    return ir.DenseElementsAttr.get(contiguous, type=element_type(array.dtype), shape=array.shape)


def parse_module(text: str | bytes) -> ir.Module:
    """A module from its text or bytecode."""
    with new_context() as current:
        if (b"sdy." if isinstance(text, bytes) else "sdy.") in text:  # type: ignore[operator]
            _register_sdy(current)
        return ir.Module.parse(text)


def _register_sdy(context: ir.Context) -> None:
    """Load Shardy's dialect, which programs over several devices are written with."""
    with uninterrupted():
        from jaxlib.mlir._mlir_libs import _sdy

    _sdy.register_dialect(context)


def module_text(module: ir.Module, *, debug_info: bool = False) -> str:
    """A module in the dialects' own notation, with locations or without."""
    return module.operation.get_asm(enable_debug_info=debug_info)


def xla_computation(module: ir.Module) -> Any:
    """The module in XLA's own language, not optimised: jaxlib's object, with ``as_hlo_text()``."""
    return core.mlir.mlir_module_to_xla_computation(
        module.operation.get_asm(binary=False, enable_debug_info=True, print_generic_op_form=True), False, False
    )


def run_passes(module: ir.Module, pipeline: str) -> None:
    """Rewrite ``module`` in place, for example by
    ``"builtin.module(func.func(chlo-legalize-to-stablehlo))"``.
    """
    _register_passes()
    with module.context:
        PassManager.parse(pipeline).run(module.operation)


@cache
def _register_passes() -> None:
    _stablehlo.register_stablehlo_passes()


def stablehlo_versions() -> tuple[str, str]:
    """The oldest and the current version of StableHLO that this jaxlib reads and writes."""
    return _stablehlo.get_minimum_version(), _stablehlo.get_current_version()


def portable_version() -> str:
    """The version of StableHLO that every release of the last twelve weeks reads."""
    return _stablehlo.get_version_from_compatibility_requirement(_stablehlo.StablehloCompatibilityRequirement.WEEK_12)


def to_portable(module: ir.Module) -> bytes:
    """StableHLO's portable bytes of a module (a stable format), without locations; CHLO is lowered first, in a copy.

    Operations of Shardy's, for which nobody promises stability, go as they are.

    Raises:
        ir.MLIRError or RuntimeError: the version has not all that the module is made of.
    """
    copy = clone(module)
    run_passes(copy, "builtin.module(func.func(chlo-legalize-to-stablehlo))")
    more = (True,) if "sdy." in copy.operation.get_asm() else ()
    return _stablehlo.serialize_portable_artifact(copy, portable_version(), *more)


def from_portable(data: bytes) -> ir.Module:
    """The module of :func:`to_portable`'s bytes."""
    with new_context() as current:
        if b"sdy" in data:
            _register_sdy(current)
            current.load_all_available_dialects()
        return _stablehlo.deserialize_portable_artifact(current, data)


def meshes_text(module: ir.Module) -> dict[str, str]:
    """The meshes that a module declares: symbol (``@mesh``) -> text (``<["x"=8]>``)."""
    lines = [op.operation.get_asm() for op in module.body.operations if op.operation.name == "sdy.mesh"]
    return dict(line.removeprefix("sdy.mesh ").split(" = ", 1) for line in map(str.strip, lines))


def functions_text(module: ir.Module, rename: Callable[[str], str]) -> list[str]:
    """The functions of a module as text, each complete in itself, all private; ``main`` first.

    Args:
        module: changed in the course of it.
        rename: gives the new name for each name; called for ``main`` first.
    """
    given = [op for op in module.body.operations if op.operation.name == "func.func"]
    functions = sorted(given, key=lambda op: ir.StringAttr(op.attributes["sym_name"]).value != "main")
    with module.context:
        taken = [(op, rename(ir.StringAttr(op.attributes["sym_name"]).value)) for op in functions]
        for step in ("{}_being_renamed", "{}"):  # a new name may be another function's old one
            for op, name in taken:
                new = ir.StringAttr.get(step.format(name))
                old = ir.StringAttr(op.attributes["sym_name"])
                ir.SymbolTable.replace_all_symbol_uses(old.value, new.value, module.operation)
                ir.SymbolTable.set_symbol_name(op, new.value)
        for op, _ in taken:
            op.attributes["sym_visibility"] = ir.StringAttr.get("private")
        return [op.operation.get_asm(use_local_scope=True) for op, _ in taken]


def written_module(
    in_avals: Sequence[Any], out_avals: Sequence[Any], body: Callable[..., Sequence[ir.Value]]
) -> ir.Module:
    """Return a module whose `main` is written by ``body(module, *values) -> values``, in a context of its own.

    Args:
        in_avals, out_avals: types of the arguments and results, with `shape` and `dtype`.
        body: appends operations to the function.
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


def call_module(module: ir.Module, text: str, values: Sequence[ir.Value]) -> list[ir.Value]:
    """Add the functions of a module's text to ``module`` and call its ``main`` where operations are written now."""
    taken = {
        ir.StringAttr(op.attributes["sym_name"]).value for op in module.body.operations if "sym_name" in op.attributes
    }

    def fresh(name: str) -> str:
        found = next(n for i in range(len(taken) + 1) if (n := f"{name}_{i}") not in taken)
        taken.add(found)
        return found

    functions = functions_text(ir.Module.parse(text, module.context), fresh)
    parsed = ir.Module.parse("\n".join(functions), module.context)
    main = None
    for operation in parsed.body.operations:
        added = operation.operation.clone(ir.InsertionPoint(module.body))
        main = main or added
    return list(func.CallOp(main.opview, list(values)).results)


def clone(module: ir.Module) -> ir.Module:
    """A copy of a module, in the same context."""
    return ir.Module.parse(module.operation.get_asm(binary=False, print_generic_op_form=True), module.context)
