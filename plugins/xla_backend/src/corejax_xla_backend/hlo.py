"""Public functions for authors of translation rules: a reference interpreter, calls of LAPACK, partitioned calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import ClosedJaxpr, ShapedArray, tree
from corejax.extend.devices import TranslationContext, TranslationValue
from corejax_xla_backend import _jaxlib
from corejax_xla_backend._jit.stages import Lowered
from corejax_xla_backend._lowering import partitioned_calls as calls
from corejax_xla_backend._lowering.context import add_main
from corejax_xla_backend._lowering.custom_calls import attributes_of, dimension_factors, sharding_rule
from corejax_xla_backend._lowering.module import ModuleBuilder
from corejax_xla_backend._lowering.partitioned_calls import is_over_devices as is_over_devices
from corejax_xla_backend._lowering.partitioned_calls import mesh_of as mesh_of
from corejax_xla_backend._parts import flat_program

if TYPE_CHECKING:
    from corejax_xla_backend._jaxlib import ir as ir
    from corejax_xla_backend._xla.on_host import host_function as host_function
else:

    def __getattr__(name: str) -> Any:
        """Return `host_function`; the interpreter's own process, which loads no plugins, does without its module.

        Or return `ir`, MLIR's bindings, which are imported when a program is compiled.
        """
        if name == "ir":
            return _jaxlib.ir
        if name != "host_function":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from corejax_xla_backend._xla.on_host import host_function

        return host_function


def reference_eval(lowered: Lowered, *args: Any) -> list[np.ndarray[Any, Any]]:
    """Run a lowered program by StableHLO's reference interpreter, which is slow, simple and independent of XLA.

    Args:
        lowered: the result of `jit(f).lower(*args)`.
        *args: concrete arguments of the types that the program is lowered for.

    Returns:
        The results, as a flat list of arrays.

    Raises:
        TypeError: the arguments do not have these types.
        RuntimeError: the interpreter does not implement an operation, or would end the process on it: custom calls and
            `fft`. (It also ends the process on empty contractions and integer division by zero; these are not checked.)
    """
    program, operands = program_and_operands(lowered, *args)
    for operation in ("stablehlo.custom_call", "stablehlo.fft"):
        if f'"{operation}"' in program:
            raise RuntimeError(f"the interpreter ends the process on {operation}")
    return interpret(program, operands)


def program_and_operands(lowered: Lowered, *args: Any) -> tuple[str, list[np.ndarray[Any, Any]]]:
    """Return a lowered program as text, and its operands as NumPy arrays; both can be sent to another process."""
    leaves = [*lowered.consts, *tree.tree_leaves((args, {}))]
    used = [np.asarray(x) for x, keep in zip(leaves, lowered.lowering.kept, strict=True) if keep]
    return lowered.as_text(pretty=False), used


def interpret(program: str, operands: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """Run the result of `program_and_operands` by the reference interpreter, in a process that may be ended by it."""
    return _jaxlib.reference_eval(program, list(operands))


def module_text(closed: ClosedJaxpr, platform: str, name: str, callbacks: list[Callable[..., Any]]) -> str:
    """Return a program as the text of a StableHLO module, to be merged into the module of another compiler.

    Args:
        closed: the program; its constants are embedded in the text.
        platform: the platform to look up translation rules for.
        name: the name of the module.
        callbacks: the Python functions of the executable that the text becomes a part of. The program's callbacks are
            appended to this list, and the text refers to them by their indices in it.

    Returns:
        The module. Its public function `main` takes the arguments and returns the results.
    """
    closed = flat_program(closed)
    module = ModuleBuilder(platform, name)
    module.callbacks = callbacks
    add_main(module, closed, [True] * len(closed.in_avals), embedded=True)
    return module.text(name)


def splice(
    ctx: TranslationContext,
    owner: Any,
    make_text: Callable[[], str],
    vals: Sequence[TranslationValue],
    out_avals: Sequence[ShapedArray],
) -> list[Any]:
    """Append a call of a function that another compiler has written.

    Args:
        ctx: the builder of a translation rule.
        owner: an object that stands for the function. Its text is added to the module once.
        make_text: returns the text of a StableHLO module; its function `main` is called.
        vals: the operands.
        out_avals: types of the results.

    Returns:
        The results.
    """

    def functions(rename: Callable[[str], str]) -> list[str]:
        module = _jaxlib.parse_module(make_text())
        return _jaxlib.functions_text(module, lambda name: rename("spliced" if name == "main" else name))

    builder = _builder(ctx)
    called: list[Any] = builder.call_symbol(builder.module.spliced(owner, functions), vals, out_avals)
    return called


def lapack_call(
    ctx: TranslationContext,
    target: str,
    *operands: TranslationValue,
    out: Sequence[ShapedArray],
    attributes: Mapping[str, Any] | None = None,
    in_place: Sequence[tuple[int, int]] = (),
) -> list[Any]:
    """Append a call of one of the LAPACK kernels that come with jaxlib, on CPUs.

    Args:
        ctx: the builder of a translation rule, for the platform `"cpu"`.
        target: the kernel, `"lapack_spotrf_ffi"`.
        *operands: the operands. Among operands and results, those of the highest rank are matrices, in column-major
            order; the others are vectors and scalars with the same batch axes.
        out: types of the results.
        attributes: the kernel's attributes; characters are `np.uint8(ord("L"))`, integers `np.int32`.
        in_place: pairs of an operand and the result that takes its memory.

    Returns:
        The results.
    """
    _jaxlib.register_lapack()
    avals = [v.aval for v in operands]
    ndim = max(a.ndim for a in (*avals, *out))
    batch_dims = ndim - 2 if _builder(ctx).module.meshes.count > 1 else 0
    attrs = attributes_of(target, avals, out, attributes or {}, False, ndim, in_place, batch_dims)
    results: list[TranslationValue] = ctx.op("custom_call", *operands, out=list(out), attrs=attrs)
    return results


def partitioned_call(
    ctx: TranslationContext,
    vals: Sequence[Any],
    out_avals: Sequence[ShapedArray],
    rule: Any,
    split: Callable[[Sequence[Any], Sequence[Any]], tuple[Any, ...]],
) -> list[Any]:
    """Append a call that each device runs on its parts; `split` says how.

    Args:
        ctx: the builder of a translation rule, with `is_over_devices(ctx)`.
        vals: the operands.
        out_avals: types of the results.
        rule: how shardings of operands and results depend on each other; None if they do not. An object with `operands`
            and `results` (the numbers of each dimension's factors), `sizes` of the factors, and the factors that are
            `reduction`, `need_replication` and `permutation`.
        split: `(shardings of operands, of results) -> (mesh, write, shardings of operands, of results)`: from the
            shardings that propagation has chosen to those that the call uses. `write(ctx, *parts)` returns the results'
            parts.

    Returns:
        The results.
    """
    text = ""
    if rule is not None:
        sides = [", ".join(map(dimension_factors, side)) for side in (rule.operands, rule.results)]
        text = sharding_rule(sides, rule.sizes, rule.need_replication, rule.reduction, rule.permutation)
    return calls.partitioned_call(_builder(ctx), vals, out_avals, text, lambda *given: calls.Split(*split(*given)))


def _builder(ctx: TranslationContext) -> Any:
    """Return the builder itself: the kernel's protocol declares only what every rule may use."""
    return ctx


# -- rules that write operations by jaxlib's MLIR bindings -----------------------------------------------------------


def element_type(dtype: Any) -> Any:
    """Return the MLIR element type of a dtype, in the current context."""
    return _jaxlib.element_type(dtype)


def dense_attribute(value: np.ndarray[Any, Any]) -> Any:
    """Return an array as an MLIR attribute, in the current context."""
    return _jaxlib.dense_attr(value)


def call_written(
    ctx: TranslationContext,
    name: str,
    vals: Sequence[TranslationValue],
    out_avals: Sequence[ShapedArray],
    body: Callable[..., Sequence[Any]],
) -> list[Any]:
    """Append a call of a function that is written by jaxlib's MLIR bindings.

    Args:
        ctx: the builder of a translation rule.
        name: the function's name.
        vals: the operands.
        out_avals: types of the results.
        body: `(module, *values) -> values`, with jaxlib's objects; called once, inside the module's context.

    Returns:
        The results.
    """
    module = _jaxlib.written_module([v.aval for v in vals], out_avals, body)

    def functions(rename: Callable[[str], str]) -> list[str]:
        return _jaxlib.functions_text(module, lambda symbol: rename(name if symbol == "main" else symbol))

    builder = _builder(ctx)
    called: list[Any] = builder.call_symbol(builder.module.spliced(module, functions), vals, list(out_avals))
    return called


def call_lowered(module: Any, lowered: Lowered, operands: Sequence[Any]) -> list[Any]:
    """Append a call of a lowered program in the body of `call_written`.

    Args:
        module: the module that the body gets.
        lowered: the result of `jit(f).lower(*args)`.
        operands: jaxlib's values for the program's constants and its arguments.
    """
    used = [x for x, keep in zip(operands, lowered.lowering.kept, strict=True) if keep]
    return _jaxlib.call_module(module, lowered.as_text(pretty=False), used)


def call_program(ctx: TranslationContext, module: Any, closed: ClosedJaxpr, operands: Sequence[Any]) -> list[Any]:
    """Append a call of a program in the body of `call_written`; the program may call Python on the host.

    Args:
        ctx: the builder that `call_written` got.
        module: the module that the body gets.
        closed: the program.
        operands: jaxlib's values for the program's arguments.
    """
    outer = _builder(ctx).module
    return _jaxlib.call_module(module, module_text(closed, outer.platform, "program", outer.callbacks), operands)
