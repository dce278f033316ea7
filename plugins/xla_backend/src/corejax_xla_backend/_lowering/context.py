"""The interface for translation rules: a context appends StableHLO operations to a function, as text.

The text is MLIR's generic form, which is stable and quick to write, so that lowering needs no jaxlib. The operations
and their attributes are defined in the StableHLO specification, https://openxla.org/stablehlo/spec.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, overload

import numpy as np

from corejax.extend import ClosedJaxpr, ShapedArray, dtypes, host_value
from corejax.extend.types import SymbolicDim, as_dim, max_dim
from corejax_xla_backend._lowering.custom_calls import attributes_of, check_batch, is_partitioned
from corejax_xla_backend._lowering.inlining import Inlining
from corejax_xla_backend._lowering.module import MAIN, ModuleBuilder
from corejax_xla_backend._lowering.placing import Placing
from corejax_xla_backend._lowering.regions import TOKEN, Region
from corejax_xla_backend._lowering.two_bits import check_divided
from corejax_xla_backend._lowering.types import (
    KNOWN_NAN,
    PackedValue,
    SlicedValue,
    Value,
    check_operands,
    element_text,
    flat_values,
    packed_values,
    tensor_type,
)
from corejax_xla_backend._parts import flat_avals, is_stored

# Operations that would not keep the order of effects, in the user's words.
_UNORDERED = {"while": "in the condition of a loop", "sdy.manual_computation": "in the function of a shard_map or pmap"}
_SLICES = frozenset({"stablehlo.slice", "stablehlo.dynamic_slice"})
_PLACING = frozenset({"sdy.sharding_constraint", "sdy.manual_computation"})
# Unary operations that XLA's CPU compiler computes as exponentials, of real and of complex numbers.
_EXPONENTIALS = frozenset({"stablehlo.exponential", "stablehlo.exponential_minus_one"})
_COMPLEX_EXPONENTIALS = _EXPONENTIALS | {"stablehlo.sine", "stablehlo.cosine", "stablehlo.tan"}
# Operations with regions that combine elements of arrays; XLA allows no calls there.
_COMBINING = frozenset({"reduce", "reduce_window", "scatter", "select_and_scatter", "sort", "all_reduce", "map"})


class TranslationContext(Placing, Inlining):
    """The builder that a translation rule gets: it appends the operations of one function."""

    __slots__ = ()

    # -- operations --------------------------------------------------------------------------------

    @overload
    def op(
        self, name: str, *operands: Value, out: ShapedArray, attrs: str = "", regions: Sequence[str] = ()
    ) -> Value: ...
    @overload
    def op(
        self, name: str, *operands: Value, out: Sequence[ShapedArray], attrs: str = "", regions: Sequence[str] = ()
    ) -> list[Value]: ...
    def op(
        self,
        name: str,
        *operands: Value,
        out: ShapedArray | Sequence[ShapedArray],
        attrs: str = "",
        regions: Sequence[str] = (),
    ) -> Any:
        """Append an operation.

        Args:
            name: a StableHLO operation (`"add"`), or a dotted name of another dialect (`"chlo.erf"`).
            *operands: its operands.
            out: type of its result, or a list of types.
            attrs: the body of its attribute dictionary, as MLIR text.
            regions: its regions, made by `region`.

        Returns:
            The result, or a list of results if `out` is a list.

        Raises:
            NotImplementedError: a region that combines elements calls Python or a kernel (XLA would abort), or a
                region of an operation other than `while` and `case` has ordered effects.
            BackendError: the operation would move two-bit integers between CPU devices.
            TypeError: an operand is not a value of the program.
        """
        if regions:
            if name in _COMBINING:
                _require_no_calls(name, regions, self.module.functions)
            if any(type(region) is Region and region.token_out is not None for region in regions):
                return self._ordered_op(name, operands, out, attrs, regions)
        if name == "custom_call" and not is_partitioned(attrs):
            self.module.opaque += 1
        if self.module.meshes.count > 1 and self.platform == "cpu" and self.module.meshes.divides:
            check_divided(name, [v.aval for v in operands])
        if "." not in name:
            name = "stablehlo." + name
        elif name in _PLACING:
            operands = tuple(self.behind_barriers(operands))
        number = self._counter[0] = self._counter[0] + 1
        try:
            # Most operations have one or two operands, so that these cases are unrolled.
            if len(operands) == 1:
                [x] = operands
                names, types, origins = x.name, tensor_type(x.aval), x.origins
            elif len(operands) == 2:
                x, y = operands
                names, types = f"{x.name}, {y.name}", f"{tensor_type(x.aval)}, {tensor_type(y.aval)}"
                origins = x.origins | y.origins
            else:
                names = ", ".join([v.name for v in operands])
                types = ", ".join([tensor_type(v.aval) for v in operands])
                origins = self._origins(operands)
        except AttributeError:
            check_operands(name, operands)
            raise
        middle = ""
        if regions:
            middle, origins = f" ({', '.join(regions)})", self._origins(operands, regions)
        if attrs:
            middle += f" {{{attrs}}}"
        if type(out) is ShapedArray:
            self.lines.append(f'%{number} = "{name}"({names}){middle} : ({types}) -> {tensor_type(out)}{self.mark}')
            result = (SlicedValue if name in _SLICES else Value)(f"%{number}", out, origins)
            return self._keep_nan(name, operands, result) if origins & KNOWN_NAN else result
        avals: Sequence[ShapedArray] = [out] if isinstance(out, ShapedArray) else out
        bound, result_types, results = self.results(number, avals, origins)
        self.lines.append(f'{bound}"{name}"({names}){middle} : ({types}) -> ({result_types}){self.mark}')
        return results[0] if avals is not out else results

    def _keep_nan(self, name: str, operands: Sequence[Value], result: Value) -> Value:
        """Select the operand of an exponential function where the operand is NaN.

        On CPUs, XLA computes exponentials with a conversion to integers, which LLVM leaves undefined for NaN. If LLVM
        can derive at compile time that the operand is NaN (`exp(x * nan)`), it removes the computation, and the result
        is whatever the memory holds. The selection costs up to half of the time of an exponential that is fused with
        others, so that only operands that depend on a constant NaN get it.
        """
        complex_ = dtypes.is_complex(result.aval.dtype)
        if self.platform != "cpu" or name not in (_COMPLEX_EXPONENTIALS if complex_ else _EXPONENTIALS):
            return result
        [x] = operands
        is_nan = self.compare("NE", x, x)
        if complex_:  # translation rules restore the part of the result that is not NaN
            x = self.full(x.aval, complex(math.nan, math.nan))
        return self.op("select", is_nan, x, result, out=result.aval)

    def _ordered_op(self, name: str, operands: Sequence[Value], out: Any, attrs: str, regions: Sequence[str]) -> Any:
        """Append an operation and thread the token of ordered effects through its regions."""
        ours = [region for region in regions if type(region) is Region]
        are_regions = len(ours) == len(regions)
        if are_regions and name == "while" and ours[0].token_out is None:
            operands = (*operands, self.token)
            threaded = [r.with_token_argument(returns_token=r is not ours[0]) for r in ours]
        elif are_regions and name in ("case", "if"):
            threaded = [r.with_captured_token(self.token) for r in ours]
        else:
            where = _UNORDERED.get(name, f"inside of {name}")
            raise NotImplementedError(
                f"ordered effects (of callbacks with ordered=True) {where}: XLA would not keep their order; use "
                "ordered=False there, or move the callback outside"
            )
        outs = [out] if isinstance(out, ShapedArray) else list(out)
        results = self.op(name, *operands, out=[*outs, TOKEN], attrs=attrs, regions=threaded)
        self.token = results.pop()
        return results[0] if isinstance(out, ShapedArray) else results

    def custom_call(
        self,
        target: str,
        *operands: Value,
        out: ShapedArray | Sequence[ShapedArray],
        attributes: Mapping[str, Any] | None = None,
        has_side_effect: bool = False,
        calls_python: bool = False,
        batch_dims: int = 0,
        in_place: Sequence[tuple[int, int]] = (),
    ) -> Any:
        """Append a call of a kernel that is registered with XLA's typed FFI (`corejax.ffi.register_ffi_target`).

        Args:
            target: the kernel's name.
            *operands: its operands, in row-major order.
            out: type of its result, or a list of types.
            attributes: the kernel's attributes: strings, booleans, numbers and one-dimensional NumPy arrays. Python
                ints arrive as int64 and floats as double; NumPy's numbers and arrays keep their dtype.
            has_side_effect: whether the compiler keeps the call if its results are not used.
            calls_python: whether only one device calls the kernel in a program over several, with whole operands.
            batch_dims: number of leading axes that all operands and results share and over which the kernel computes
                each element independently. Over several devices, each device calls the kernel on its part of them.
            in_place: pairs of an operand and a result of the same type that is computed in the operand's memory.

        Returns:
            The result, or a list of results if `out` is a list.

        Raises:
            ValueError: the operands and results do not share `batch_dims` leading axes.
        """
        results = flat_avals([out] if isinstance(out, ShapedArray) else out)
        avals = [v.aval for v in flat_values(operands)]
        check_batch(target, [*avals, *results], batch_dims)
        batch_dims = batch_dims if self.module.meshes.count > 1 else 0
        attrs = attributes_of(
            target, avals, results, attributes or {}, has_side_effect, in_place=in_place, batch_dims=batch_dims
        )
        if calls_python and (place := self.module.meshes.callback_sharding(len(results))):
            attrs += ", " + place
        return self.op("custom_call", *operands, out=out, attrs=attrs)

    @staticmethod
    def i64(values: Iterable[int]) -> str:
        """Return an array attribute of 64-bit integers."""
        listed = ", ".join(str(as_dim(v)) for v in values)
        return f"array<i64: {listed}>" if listed else "array<i64>"

    def region(self, arg_avals: Sequence[ShapedArray], body: Callable[..., Any]) -> str:
        """Return a region; `body(ctx, *args)` appends its operations and returns its value or values."""
        return self._region(arg_avals, body, "stablehlo")

    def _region(
        self, arg_avals: Sequence[ShapedArray], body: Callable[..., Any], dialect: str, given: Sequence[Value] = ()
    ) -> str:
        """Return a region that ends with the `return` of a dialect.

        If `given` is not empty, the region's arguments are parts of these values and share their origins.
        """
        inner = TranslationContext(self.module, self._counter, self.mark, self.scope, self._origin_bits)
        args = []
        for aval in flat_avals(arg_avals):
            self._counter[0] += 1
            name = f"%a{self._counter[0]}"
            args.append(Value(name, aval, self._origins(given)) if given else inner.argument(name, aval))
        inner.token = before = self.module.new_token()
        outs = body(inner, *packed_values(arg_avals, args))
        outs = flat_values([outs] if isinstance(outs, Value) else outs)
        return Region(args, inner.lines, outs, before, None if inner.token is before else inner.token, dialect)

    @staticmethod
    def packed(aval: ShapedArray, parts: Sequence[Value]) -> Value:
        """Return the value of a type that the values `parts` store."""
        return packed_values([aval], parts)[0]

    @staticmethod
    def parts(values: Iterable[Value]) -> list[Value]:
        """Return values of arrays only: a value that is stored in other arrays is replaced by theirs."""
        return flat_values(values)

    # -- constants and shapes ----------------------------------------------------------------------

    def constant(self, value: Any, dtype: Any = None) -> Value:
        """Return a constant from a NumPy array or a scalar; equal small constants are written once."""
        # NumPy values of a rule keep their dtype; `host_value` narrows Python numbers under `config.x64_compat`.
        array = np.asarray(value if isinstance(value, np.ndarray | np.generic) else host_value(value))
        if dtype is not None and array.dtype != dtype:
            array = array.astype(dtype)
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        # A broadcast scalar is written as one element, whatever its shape.
        splat = array.size > 0 and all(
            step == 0 or size == 1 for step, size in zip(array.strides, array.shape, strict=True)
        )
        array_key = array[(0,) * array.ndim] if splat else array
        key = (array_key.tobytes(), array.dtype, array.shape) if array_key.size <= 64 else None
        if key is not None and key in self._constants:
            return self._constants[key]
        constant = self._write_constant(array, splat)
        if key is not None:  # LLVM does not look into larger constants, so that these need no NaN mark
            self._constants[key] = constant
            if np.count_nonzero(array_key != array_key):
                constant.origins |= KNOWN_NAN
        return constant

    def _write_constant(self, array: np.ndarray[Any, Any], splat: bool) -> Value:
        """Append a constant; `splat` says that all elements are equal.

        Booleans are written one-dimensional and reshaped; elements narrower than a byte are written wider and
        converted.
        """
        aval = ShapedArray(array.shape, array.dtype)
        if array.size == 0:
            return self._dense("", aval)
        if splat:
            return self._dense(element_text(array[(0,) * array.ndim]), aval)
        if array.dtype == np.bool_:
            flat = ShapedArray((array.size,), array.dtype)
            listed = ", ".join("true" if x else "false" for x in array.reshape(-1).tolist())
            return self.reshape(self._dense(f"[{listed}]", flat), array.shape)
        if array.dtype.name in ("int4", "uint4", "int2", "uint2", "float4_e2m1fn"):
            wide: np.dtype[Any] = np.dtype(np.int8 if array.dtype.name.startswith("int") else np.uint8)
            if array.dtype.name.startswith("float"):
                wide = np.dtype(np.float32)
            return self.convert(self._write_constant(array.astype(wide), False), array.dtype)
        little = array if array.dtype.byteorder in "=|<" else array.astype(array.dtype.newbyteorder("<"))
        return self._dense(f'"0x{np.ascontiguousarray(little).tobytes().hex().upper()}"', aval)

    def _dense(self, text: str, aval: ShapedArray) -> Value:
        """Append a constant with the text of MLIR's `dense` attribute."""
        constant: Value = self.op("constant", out=aval, attrs=f"value = dense<{text}> : {tensor_type(aval)}")
        if not text.startswith(('"', "[")):  # a constant of equal elements has no memory that a write could change
            constant.origins = 0
        return constant

    def full(self, aval: ShapedArray, value: Any) -> Value:
        """Return a constant with the same value everywhere; for an integer dtype, the value may be a symbol."""
        if is_stored(aval):
            return PackedValue(aval, [self.full(part, value) for part in aval.parts()])
        if isinstance(value, SymbolicDim):
            return self._dense(str(value), aval)
        scalar = np.asarray(value).astype(aval.dtype)
        key = (scalar.tobytes(), aval.dtype, aval.shape)
        constant = self._constants.get(key)
        if constant is None:
            constant = self._constants[key] = self._dense("" if aval.size == 0 else element_text(scalar[()]), aval)
            if scalar != scalar:
                constant.origins |= KNOWN_NAN
        return constant

    def broadcast_in_dim(self, x: Value, shape: Sequence[int], dims: Sequence[int]) -> Value:
        """Broadcast: operand axis i becomes axis `dims[i]` of the result; a no-op if the operand has the shape."""
        shape = tuple(shape)
        if shape == x.aval.shape and tuple(dims) == tuple(range(len(shape))):
            return x
        attrs = f"broadcast_dimensions = {self.i64(dims)}"
        return self.op("broadcast_in_dim", x, out=ShapedArray(shape, x.aval.dtype), attrs=attrs)

    def expand_scalars(self, vals: Sequence[Value], shape: Sequence[int]) -> list[Value]:
        """Broadcast scalars to a shape, and return other values unchanged."""
        return [self.broadcast_in_dim(v, shape, ()) if v.aval.ndim == 0 and len(shape) else v for v in vals]

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        """Reshape a value; a no-op if it has the shape."""
        shape = tuple(shape)
        return x if shape == x.aval.shape else self.op("reshape", x, out=ShapedArray(shape, x.aval.dtype))

    def convert(self, x: Value, dtype: Any) -> Value:
        """Convert the elements to a dtype (StableHLO `convert`); a no-op if they have it."""
        return x if x.aval.dtype == dtype else self.op("convert", x, out=ShapedArray(x.aval.shape, np.dtype(dtype)))

    def slice(
        self, x: Value, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int] | None = None
    ) -> Value:
        """Return `x[starts[0]:limits[0]:strides[0], ...]`, with one entry per axis and all indices within bounds."""
        steps = (1,) * x.aval.ndim if strides is None else strides
        shape = tuple(-((a - b) // s) for a, b, s in zip(starts, limits, steps, strict=True))
        attrs = f"start_indices = {self.i64(starts)}, limit_indices = {self.i64(limits)}, strides = {self.i64(steps)}"
        return self.op("slice", x, out=x.aval.update(shape=shape), attrs=attrs)

    def pad(self, x: Value, config: Sequence[tuple[int, int, int]], value: Value | None = None) -> Value:
        """Pad with a scalar around and between elements.

        Args:
            x: the operand.
            config: for each axis, the padding before, after (negative numbers drop elements) and between elements.
            value: the scalar, of the operand's dtype; zero by default.
        """
        low, high, interior = zip(*config, strict=True) if config else ((), (), ())
        sizes = zip(x.aval.shape, low, high, interior, strict=True)
        shape = tuple(a + size + b + (gap * max_dim(size - 1, 0) if gap else 0) for size, a, b, gap in sizes)
        if value is None:
            value = self.full(ShapedArray((), x.aval.dtype), 0)
        attrs = (
            f"edge_padding_low = {self.i64(low)}, edge_padding_high = {self.i64(high)}, "
            f"interior_padding = {self.i64(interior)}"
        )
        # XLA's partitioner aborts the process if it splits an axis with negative and interior padding.
        divided = self.module.meshes.divides
        replicated = [i for i, (a, b, gap) in enumerate(config) if divided and gap and min(a, b) < 0]
        out = self.op("pad", self.undivided(x, replicated), value, out=x.aval.update(shape=shape), attrs=attrs)
        return self.undivided(out, replicated)

    def compare(self, direction: str, x: Value, y: Value) -> Value:
        """Compare two values of one type elementwise by `"EQ"`, `"NE"`, `"LT"`, `"LE"`, `"GT"` or `"GE"`."""
        if dtypes.is_inexact(x.aval.dtype):
            order = "FLOAT"
        else:
            signed = dtypes.is_integer(x.aval.dtype) and not dtypes.is_unsigned(x.aval.dtype)
            order = "SIGNED" if signed else "UNSIGNED"
        attrs = (
            f"comparison_direction = #stablehlo<comparison_direction {direction}>, "
            f"compare_type = #stablehlo<comparison_type {order}>"
        )
        return self.op("compare", x, y, out=x.aval.update(dtype=np.dtype(np.bool_)), attrs=attrs)


def add_main(
    module: ModuleBuilder,
    closed: ClosedJaxpr,
    kept: Sequence[bool],
    attributes: Mapping[int, str] | None = None,
    result_attributes: Sequence[str] = (),
    *,
    embedded: bool = False,
    known: Mapping[int, np.ndarray[Any, Any]] | None = None,
) -> None:
    """Add the entry point `main` to a module.

    Args:
        module: the module.
        closed: the program.
        kept: a flag for each of (constants, arguments), or for each argument if the constants are embedded: whether
            `main` takes it. The others are unused or in `known`.
        attributes: index in (constants, arguments) -> text of the argument's attributes.
        result_attributes: text of each result's attributes; empty if no result has any.
        embedded: whether the constants are embedded in the function.
        known: index of an argument that `main` does not take -> its value, which is embedded in the function.
    """
    known = known or {}
    binders = [*(() if embedded else closed.jaxpr.constvars), *closed.jaxpr.invars]
    ctx = TranslationContext(module, scope=(f"jit({module.name})",) if module.name else ())
    vals = [ctx.constant(known[i]) if i in known else ctx.argument(f"%arg{i}", v.aval) for i, v in enumerate(binders)]
    outs = ctx.inline(closed, vals) if embedded else ctx.inline_jaxpr(closed.jaxpr, vals)
    module.add_function(
        "public",
        MAIN,
        [v for v, keep in zip(vals, kept, strict=True) if keep],
        ctx.lines,
        outs,
        {vals[i].name: f" {{{text}}}" for i, text in (attributes or {}).items() if text},
        [f" {{{text}}}" if text else "" for text in result_attributes],
    )


def _require_no_calls(name: str, texts: Sequence[str], functions: Sequence[str]) -> None:
    """Raise NotImplementedError if regions, or functions that they call, call Python or a kernel."""
    if any("stablehlo.custom_call" in text for text in texts):
        raise NotImplementedError(
            f"the function that {name} combines elements with has a primitive that calls back on the host, or a "
            f"kernel: XLA cannot compile it inside {name}. Give the primitive an XLA translation or a decomposition"
        )
    called = {symbol for text in texts for symbol in re.findall(r"call @([\w.]+)", text)}
    if called:
        texts = [f for f in functions if (head := re.search(r"@([\w.]+)\(", f)) and head[1] in called]
        _require_no_calls(name, texts, [f for f in functions if f not in texts])
