"""Rows of the table of distributions, and what all functions that draw have in common.

    pareto = distribution("pareto", _pareto, "Draw Pareto numbers, with density ...", b=in_dtype("not negative"))

A row names a distribution, the function that draws its numbers, `_pareto(key, b, *, shape, dtype)`, and its parameters.
The row becomes the public function `pareto(key, b, shape=None, dtype=None, *, out_sharding=None)`, which checks its
arguments, and the docstring. A distribution with other arguments is a function below `@draws`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from corejax import lax
from corejax.extend import dtypes
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

    The public function checks the key first, and lays out the result if it is given `out_sharding`. The docstring gets
    a line for each of these two arguments.
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

    given = inspect.signature(fun)
    call.__signature__ = given.replace(parameters=[*given.parameters.values(), _OUT_SHARDING])  # type: ignore[attr-defined]
    summary, _, rest = inspect.cleandoc(fun.__doc__ or "").partition("Args:\n")
    arguments, _, rest = rest.partition("\n\n")
    layout = "    out_sharding: where the result is to be, a sharding or a `PartitionSpec`."
    call.__doc__ = f"{summary}Args:\n    key: a key.\n{arguments}\n{layout}\n\n{rest}"
    return as_draw(call)


# -- rows ----------------------------------------------------------------------------------------------------------


class Kind(NamedTuple):
    """Dtypes of results: (function, argument `dtype`) -> dtype, and a line for the docstring."""

    read: Function
    text: str


def _unsigned(name: str, dtype: Any) -> Any:
    found = dtype_argument(name, dtype, dtypes.default_uint_dtype)
    if found not in UINTS.values():
        raise ValueError(f"dtype argument to {name} must be an unsigned int dtype, got {dtypes.short_name(found)}")
    return found


def _any(name: str, dtype: Any) -> Any:
    return dtype_argument(name, dtype, dtypes.default_int_dtype)


FLOAT = Kind(float_dtype, "a floating-point dtype; the default one for None.")
INEXACT = Kind(
    functools.partial(float_dtype, or_complex=True),
    "a floating-point or complex dtype; the default floating-point one for None.",
)
INTEGER = Kind(integer_dtype, "a dtype of integers; the default one for None.")
UNSIGNED = Kind(_unsigned, "an unsigned dtype; by default uint32, or uint64 if 64 bits are the default.")
ANY = Kind(_any, "of the result; the default one of integers for None.")


class Parameter(NamedTuple):
    """A parameter of a distribution.

    Attributes:
        text: what it is, for the docstring.
        read: (function, argument, value, dtype of the result) -> the checked value, an array or a number.
        default: the default value as Python text, if there is one.
        is_narrow: whether its dtype must not be wider than that of the result.
    """

    text: str
    read: Function
    default: str = ""
    is_narrow: bool = False


def in_dtype(text: str, least: float | None = 0, default: str = "") -> Parameter:
    """Describe a parameter in the dtype of the result, not less than `least`."""
    return Parameter(text, functools.partial(parameter, least=least), default, is_narrow=True)


def distribution(name: str, body: Function, doc: str, kind: Kind = FLOAT, **parameters: Parameter) -> Function:
    """Make the public function of a distribution: a row of the table of its family.

    Args:
        name: of the function.
        body: `body(key, *parameters, *, shape, dtype)` draws.
        doc: the first part of the docstring.
        kind: dtypes of the result.
        parameters: by their names, in their order. They broadcast to the shape of the result.
    """

    def check_and_draw(key: Any, values: tuple[Any, ...], shape: Any, dtype: Any) -> Any:
        dtype, pairs = kind.read(name, dtype), zip(parameters.items(), values, strict=True)
        operands = {argument: each.read(name, argument, x, dtype) for (argument, each), x in pairs}
        shape = common_shape(name, shape, **operands) if operands else shape_argument(name, shape)
        return draw(body, size_of(shape), key, *operands.values(), shape=shape, dtype=dtype)

    # The public function is generated, as `collections.namedtuple` generates methods, to take arguments by their names.
    named = "".join(
        f"{argument}: Any{each.default and f' = {each.default}'}, " for argument, each in parameters.items()
    )
    shape = None if parameters else ()
    text = (
        f"def {name}(key: Any, {named}shape: Any = {shape}, dtype: Any = None) -> Any:\n"
        f"    return check_and_draw(key, ({''.join(f'{argument}, ' for argument in parameters)}), shape, dtype)\n"
    )
    scope: dict[str, Any] = {"check_and_draw": check_and_draw, "__name__": body.__module__}
    exec(compile(text, __file__, "exec"), scope)
    scope[name].__doc__ = _docstring(inspect.cleandoc(doc), kind, parameters)
    return draws(scope[name])


def _docstring(doc: str, kind: Kind, parameters: dict[str, Parameter]) -> str:
    if parameters:
        shape = "of the result, to which the parameters broadcast; by default what they broadcast to."
        no_number, out_of_range = ", or a parameter is no number", ", or a parameter is out of its range"
    else:
        shape, no_number, out_of_range = "of the result.", "", ""
    lines = [doc, "", "Args:", *(f"    {argument}: {each.text}." for argument, each in parameters.items())]
    lines += [f"    shape: {shape}", f"    dtype: {kind.text}"]
    lines += ["", "Raises:", f"    TypeError: it is no key{no_number}."]
    if any(each.is_narrow for each in parameters.values()):
        lines.append("    TypePromotionError: a parameter is of a wider dtype than the result.")
    return "\n".join([*lines, f"    ValueError: the dtype or the shape does not fit{out_of_range}."])
