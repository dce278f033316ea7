"""Rows of the table of distributions, and the decorator of all functions that draw.

    pareto = distribution("pareto", _pareto, "Draw Pareto numbers, with density ...", b=in_dtype("not negative"))

A row has the name of a distribution, the function that draws its numbers, `_pareto(key, b, *, shape, dtype)`, and its
parameters. From the row, `distribution` generates the public function
`pareto(key, b, shape=None, dtype=None, *, out_sharding=None)`, which checks its arguments, and the docstring. A
distribution with other arguments is a function decorated with `@draws`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from corejax.extend import dtypes
from corejax_lax_basic import lax
from corejax_random.distributions.arguments import (
    common_shape,
    dtype_argument,
    float_dtype,
    integer_dtype,
    parameter,
    single_key,
)
from corejax_random.distributions.drawing import draw, size_of
from corejax_random.distributions.repeating import as_draw
from corejax_random.generators.table import UINTS
from corejax_random.keys.functions import shape_argument

Function = Callable[..., Any]
_OUT_SHARDING = inspect.Parameter("out_sharding", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="Any")


def draws(fun: Function) -> Function:
    """Decorate a public function that draws with its first argument, a typed key.

    The decorated function checks the key, and reshards the result if `out_sharding` is passed. The docstring gets a
    line for `out_sharding`.
    """
    name = fun.__name__

    @functools.wraps(fun)
    def call(*args: Any, out_sharding: Any = None, **kwargs: Any) -> Any:
        if args:
            args = (single_key(name, args[0]), *args[1:])
        elif "key" in kwargs:
            kwargs["key"] = single_key(name, kwargs["key"])
        out = fun(*args, **kwargs)
        return lax.place(name, out, out_sharding)

    signature = inspect.signature(fun)
    # mypy does not know the attribute, which `inspect.signature` reads.
    call.__signature__ = signature.replace(  # type: ignore[attr-defined]  # functions accept any attribute
        parameters=[*signature.parameters.values(), _OUT_SHARDING]
    )
    summary, _, rest = inspect.cleandoc(fun.__doc__ or "").partition("Args:\n")
    arguments, _, rest = rest.partition("\n\n")
    sharding = "    out_sharding: sharding of the result, or a `PartitionSpec`."
    call.__doc__ = f"{summary}Args:\n{arguments}\n{sharding}\n\n{rest}"
    return as_draw(call)


# -- rows ----------------------------------------------------------------------------------------------------------


class Kind(NamedTuple):
    """A kind of dtypes of results: the function (name, argument `dtype`) -> dtype, and a line for the docstring."""

    read: Function
    text: str


def _unsigned(name: str, dtype: Any) -> Any:
    dtype = dtype_argument(name, dtype, dtypes.default_uint_dtype)
    if dtype not in UINTS.values():
        raise ValueError(f"dtype argument to {name} must be an unsigned int dtype, got {dtypes.short_name(dtype)}")
    return dtype


def _any(name: str, dtype: Any) -> Any:
    return dtype_argument(name, dtype, dtypes.default_int_dtype)


FLOAT = Kind(float_dtype, "a floating-point dtype; None is the default one.")
INEXACT = Kind(
    functools.partial(float_dtype, or_complex=True),
    "a floating-point or complex dtype; None is the default floating-point dtype.",
)
INTEGER = Kind(integer_dtype, "an integer dtype; None is the default one.")
UNSIGNED = Kind(_unsigned, "an unsigned integer dtype; None is uint32, or uint64 if 64 bits are the default.")
ANY = Kind(_any, "dtype of the result; None is the default integer dtype.")


class Parameter(NamedTuple):
    """A parameter of a distribution.

    Attributes:
        text: description for the docstring.
        read: function (name, argument, value, dtype of the result) -> the checked value, an array or a number.
        default: the default value as Python text, or "".
        is_narrow: whether the parameter's dtype must not be wider than the result's.
    """

    text: str
    read: Function
    default: str = ""
    is_narrow: bool = False


def in_dtype(text: str, least: float | None = 0, default: str = "") -> Parameter:
    """Return a parameter that is converted to the dtype of the result and must not be less than `least`."""
    return Parameter(text, functools.partial(parameter, least=least), default, is_narrow=True)


def distribution(name: str, body: Function, doc: str, kind: Kind = FLOAT, **parameters: Parameter) -> Function:
    """Generate the public function of a distribution: a row of the table of its family.

    Args:
        name: name of the function.
        body: function `body(key, *parameters, *, shape, dtype)` that draws.
        doc: first part of the docstring.
        kind: kind of dtypes of the result.
        **parameters: the parameters, in order. They broadcast to the shape of the result.
    """

    def check_and_draw(key: Any, values: tuple[Any, ...], shape: Any, dtype: Any) -> Any:
        dtype, pairs = kind.read(name, dtype), zip(parameters.items(), values, strict=True)
        operands = {argument: each.read(name, argument, x, dtype) for (argument, each), x in pairs}
        shape = common_shape(name, shape, **operands) if operands else shape_argument(name, shape)
        return draw(body, size_of(shape), key, *operands.values(), shape=shape, dtype=dtype)

    # The function is generated from text, as `collections.namedtuple` generates methods, so that it has real parameter
    # names.
    named = "".join(
        f"{argument}: Any{each.default and f' = {each.default}'}, " for argument, each in parameters.items()
    )
    shape = None if parameters else ()
    text = (
        f"def {name}(key: Any, {named}shape: Any = {shape}, dtype: Any = None) -> Any:\n"
        f"    return check_and_draw(key, ({''.join(f'{argument}, ' for argument in parameters)}), shape, dtype)\n"
    )
    scope: dict[str, Any] = {"Any": Any, "check_and_draw": check_and_draw, "__name__": body.__module__}
    exec(compile(text, __file__, "exec"), scope)
    scope[name].__doc__ = _docstring(inspect.cleandoc(doc), kind, parameters)
    return draws(scope[name])


def _docstring(doc: str, kind: Kind, parameters: dict[str, Parameter]) -> str:
    if parameters:
        shape = "shape of the result, to which the parameters broadcast; by default the shape that they broadcast to."
        no_number, out_of_range = ", or a parameter is not a number", ", or a parameter is out of range"
    else:
        shape, no_number, out_of_range = "shape of the result.", "", ""
    lines = [
        doc,
        "",
        "Args:",
        "    key: a key.",
        *(f"    {argument}: {each.text}." for argument, each in parameters.items()),
    ]
    lines += [f"    shape: {shape}", f"    dtype: {kind.text}"]
    lines += ["", "Raises:", f"    TypeError: if `key` is not a key{no_number}."]
    if any(each.is_narrow for each in parameters.values()):
        lines.append("    TypePromotionError: if a parameter has a wider dtype than the result.")
    return "\n".join([*lines, f"    ValueError: if the dtype or the shape is invalid{out_of_range}."])
