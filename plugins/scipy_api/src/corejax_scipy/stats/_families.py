"""Build distributions from functions in standard form: add location and scale, supports, and checks of arguments.

norm = located("norm", "...", "", {"logpdf": lambda y: ..., "cdf": special.ndtr})
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import corejax.numpy as jnp
from corejax.extend import remembered
from corejax.extend.messages import did_you_mean
from corejax_lax_basic import lax
from corejax_scipy._arguments import taking, together

Function = Callable[..., Any]


class Distribution(ModuleType):
    """A distribution with functions as attributes; it is a module, since users of JAX import distributions as modules.

    Args:
        name: the name in `corejax.scipy.stats`.
        doc: the docstring.
        functions: functions by name; `logpdf` also gives `pdf`, and `logpmf` gives `pmf`, with the same arguments.

    Attributes:
        name: the name in `corejax.scipy.stats`.
    """

    def __init__(self, name: str, doc: str, functions: Mapping[str, Function]) -> None:
        super().__init__(f"corejax.scipy.stats.{name}", doc)
        self.name = name
        for key, function in functions.items():
            add(self, key, function)
            short = key[3:]
            if key in ("logpdf", "logpmf") and short not in functions:
                code = function.__code__
                arguments = " ".join(code.co_varnames[: code.co_argcount])
                density = taking(lambda *args, f=function: jnp.exp(f(*args)), arguments, function.__defaults__ or ())
                add(self, short, density)

    def __getattr__(self, key: str) -> Any:
        """Raise AttributeError for an unknown function.

        Raises:
            AttributeError: always; the message suggests a close name, or lists the functions.
        """
        if key.startswith("_") or "name" not in vars(self):
            raise AttributeError(key)
        hint = did_you_mean(key, self._functions()) or f"; its functions are {', '.join(self._functions())}"
        raise AttributeError(f"corejax.scipy.stats.{self.name} has no function {key!r}{hint}")

    def __reduce__(self) -> Any:
        return importlib.import_module, (self.__name__,)

    def _functions(self) -> list[str]:
        return sorted(key for key in vars(self) if key != "name" and not key.startswith("_"))

    def __repr__(self) -> str:
        return f"<corejax.scipy.stats.{self.name}: {', '.join(self._functions())}>"


def add(distribution: Distribution, key: str, function: Function) -> None:
    """Add a function to a distribution."""
    lax.named(function, f"{distribution.name}.{key}").__module__ = "corejax.scipy.stats"
    setattr(distribution, key, remembered(function))


def located(
    name: str,
    doc: str,
    shapes: str,
    functions: Mapping[str, Function | None],
    *,
    support: tuple[float, float] = (-math.inf, math.inf),
    valid: Function | None = None,
    safe: float = 0.5,
    arguments: Mapping[str, str] | None = None,
) -> Distribution:
    """Return a continuous distribution with location and scale.

    Results are NaN if `scale` or a shape parameter is not positive, as in SciPy.

    Args:
        name: the name in `corejax.scipy.stats`.
        doc: the docstring.
        shapes: the names of the shape parameters, separated by spaces.
        functions: functions of the standard form by name, `f(y, *shapes)`: logpdf, cdf, sf, logcdf, logsf, ppf, isf.
            None for logcdf or logsf derives it from cdf and sf.
        support: the interval in which the density is not zero.
        valid: `(*shapes)`, returns which parameters are valid; by default positive ones.
        safe: a point of the support, which replaces points outside so that derivatives stay finite.
        arguments: names of a function's first argument other than `x` (`q` for quantiles).
    """

    def checked(out: Any, scale: Any, params: list[Any]) -> Any:
        good = scale > 0
        if valid is not None:
            good = good & valid(*params)
        else:
            for p in params:
                good = good & (p > 0)
        return jnp.where(good, out, math.nan)

    def make(key: str, body: Function) -> Function:
        def of_point(*args: Any) -> Any:
            x, *params, loc, scale = together(f"{name}.{key}", *args)
            y = (x - loc) / scale if key == "logpdf" else _standard(x, loc, scale)
            # Infinity counts as above the support, so that infinite shape parameters do not give NaN there.
            below, above = y < support[0], y >= math.inf if support[1] == math.inf else y > support[1]
            out = body(jnp.where(below | above, safe, y) if support != (-math.inf, math.inf) else y, *params)
            low, high = _OUTSIDE[key]
            out = jnp.where(below, low, jnp.where(above, high, out))
            out = jnp.where(y == y, out, math.nan)  # comparisons with NaN are False and would give a number
            return checked(out - jnp.log(scale) if key == "logpdf" else out, scale, params)

        def of_probability(*args: Any) -> Any:
            q, *params, loc, scale = together(f"{name}.{key}", *args)
            inside = (q >= 0) & (q <= 1)
            out = loc + scale * body(jnp.where(inside, q, 0.5), *params)
            return checked(jnp.where(inside, out, math.nan), scale, params)

        quantile = key in ("ppf", "isf")
        first = (arguments or {}).get(key, "q" if quantile else "x")
        chosen = of_probability if quantile else of_point
        return taking(chosen, f"{first} {shapes} loc scale", (0, 1))

    return Distribution(name, doc, {key: make(key, f) for key, f in _completed(functions).items()})


def _standard(x: Any, loc: Any, scale: Any) -> Any:
    """Return `(x - loc) / scale`, with zero derivatives by `loc` and `scale` at infinity."""
    far = jnp.abs(x) == math.inf
    return jnp.where(far, x, (jnp.where(far, 0.0, x) - loc) / scale)


_OUTSIDE = {
    "logpdf": (-math.inf, -math.inf), "cdf": (0.0, 1.0), "sf": (1.0, 0.0),
    "logcdf": (-math.inf, 0.0), "logsf": (0.0, -math.inf),
}  # fmt: skip


def _completed(functions: Mapping[str, Function | None]) -> dict[str, Function]:
    """Replace `None` for logcdf or logsf by a function derived from cdf and sf."""
    parts = {"logcdf": ("cdf", "sf"), "logsf": ("sf", "cdf")}
    out: dict[str, Function] = {}
    for key, function in functions.items():
        if function is None:
            part, rest = (functions[name] for name in parts[key])
            assert part is not None and rest is not None, key
            function = _logarithm(part, rest)
        out[key] = function
    return out


def _logarithm(part: Function, rest: Function) -> Function:
    """Return `log(part)`, computed as `log1p(-rest)` where `rest` is small."""

    def f(y: Any, *shapes: Any) -> Any:
        inner, outer = part(y, *shapes), rest(y, *shapes)
        small = inner < 0.5
        return jnp.where(small, jnp.log(jnp.where(small, inner, 0.5)), jnp.log1p(-jnp.where(small, 0.5, outer)))

    return f


def counting(
    name: str, doc: str, shapes: str, logpmf: Function, *, support: Function, valid: Function, safe: Function
) -> Distribution:
    """Return a distribution of whole numbers with a location; other numbers have probability 0.

    Args:
        name: the name in `corejax.scipy.stats`.
        doc: the docstring.
        shapes: the names of the shape parameters, separated by spaces.
        logpmf: the logarithm of the probability, `f(y, *shapes)`.
        support: `(y, *shapes)`, returns which whole numbers have positive probability.
        valid: `(*shapes)`, returns which parameters are valid; results are NaN for others.
        safe: `(*shapes)`, a number of positive probability, which replaces others so that derivatives stay finite.
    """

    def of_number(*args: Any) -> Any:
        k, *params, loc = together(f"{name}.logpmf", *args)
        y = k - loc
        inside = support(y, *params) & (jnp.floor(y) == y)
        out = jnp.where(inside, logpmf(jnp.where(inside, y, safe(*params)), *params), -math.inf)
        return jnp.where(valid(*params) & (y == y), out, math.nan)

    return Distribution(name, doc, {"logpmf": taking(of_number, f"k {shapes} loc", (0,))})


def plain(name: str, doc: str, arguments: str, functions: Mapping[str, Function]) -> Distribution:
    """Return a distribution without location; its functions get arguments of one dtype and shape."""

    def make(key: str, body: Function) -> Function:
        return taking(lambda *args: body(*together(f"{name}.{key}", *args)), arguments)

    return Distribution(name, doc, {key: make(key, f) for key, f in functions.items()})
