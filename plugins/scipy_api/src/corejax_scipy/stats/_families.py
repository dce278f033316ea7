"""Distributions made of functions in standard form: what location and scale do, domains, arguments.

norm = located("norm", "...", "", {"logpdf": lambda y: ..., "cdf": special.ndtr})
"""

from __future__ import annotations

import difflib
import importlib
import math
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import corejax.numpy as jnp
from corejax.extend import remembered
from corejax_lax_basic import lax
from corejax_scipy._arguments import taking, together

Function = Callable[..., Any]


class Distribution(ModuleType):
    """A distribution: its functions are its attributes. It is a module, as SciPy's users of JAX import them.

    Args:
        name: in `corejax.scipy.stats`.
        doc: what it is.
        functions: by name; `pdf` comes with `logpdf` and `pmf` with `logpmf`, with the same arguments.

    Attributes:
        name: as given.
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
        """For a function that it does not have.

        Raises:
            AttributeError: always; says which was meant, or which there are.
        """
        if key.startswith("_") or "name" not in vars(self):
            raise AttributeError(key)
        close = difflib.get_close_matches(key, self._functions(), 1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(self._functions())}"
        raise AttributeError(f"corejax.scipy.stats.{self.name} has no function {key!r}; {hint}")

    def __reduce__(self) -> Any:
        return importlib.import_module, (self.__name__,)

    def _functions(self) -> list[str]:
        return sorted(key for key in vars(self) if key != "name" and not key.startswith("_"))

    def __repr__(self) -> str:
        return f"<corejax.scipy.stats.{self.name}: {', '.join(self._functions())}>"


def add(distribution: Distribution, key: str, function: Function) -> None:
    """Give a distribution one function more, written out."""
    lax.named(function, f"{distribution.name}.{key}").__module__ = "corejax.scipy.stats"
    setattr(distribution, key, remembered(function))


def located(
    name: str,
    doc: str,
    shapes: str,
    functions: Mapping[str, Function],
    *,
    support: tuple[float, float] = (-math.inf, math.inf),
    valid: Function | None = None,
    safe: float = 0.5,
    arguments: Mapping[str, str] | None = None,
) -> Distribution:
    """A continuous distribution with location and scale.

    Results are NaN where `scale` or a shape is not positive (SciPy's rule).

    Args:
        name: in `corejax.scipy.stats`.
        doc: what it is.
        shapes: names of its shape parameters.
        functions: by name, `f(y, *shapes)` of the standard form: logpdf, cdf, sf, logcdf, logsf, ppf, isf; None
            for a logarithm is that of cdf or sf.
        support: where the density is not zero.
        valid: `(*shapes)`, which ones make sense; by default positive ones.
        safe: a point of the support, which stands for points outside while derivatives are taken.
        arguments: the name of the first argument of a function, where that is not `x` (of quantiles `q`).
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
            # At infinity nothing is left, of shapes that are infinite, too.
            below, above = y < support[0], y >= math.inf if support[1] == math.inf else y > support[1]
            out = body(jnp.where(below | above, safe, y) if support != (-math.inf, math.inf) else y, *params)
            low, high = _OUTSIDE[key]
            out = jnp.where(below, low, jnp.where(above, high, out))
            out = jnp.where(y == y, out, math.nan)  # comparisons with NaN would choose something
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
    """`(x - loc) / scale`, at infinity without derivatives by `loc` and `scale`."""
    far = jnp.abs(x) == math.inf
    return jnp.where(far, x, (jnp.where(far, 0.0, x) - loc) / scale)


_OUTSIDE = {
    "logpdf": (-math.inf, -math.inf), "cdf": (0.0, 1.0), "sf": (1.0, 0.0),
    "logcdf": (-math.inf, 0.0), "logsf": (0.0, -math.inf),
}  # fmt: skip


def _completed(functions: Mapping[str, Function]) -> dict[str, Function]:
    """With `None` for a logarithm of cdf or sf replaced by what follows from both."""
    out = dict(functions)
    for key, base, other in (("logcdf", "cdf", "sf"), ("logsf", "sf", "cdf")):
        if key in functions and functions[key] is None:
            out[key] = _logarithm(functions[base], functions[other])
    return out


def _logarithm(part: Function, rest: Function) -> Function:
    """`log(part)`, as `log1p(-rest)` where that is small."""

    def f(y: Any, *shapes: Any) -> Any:
        inner, outer = part(y, *shapes), rest(y, *shapes)
        small = inner < 0.5
        return jnp.where(small, jnp.log(jnp.where(small, inner, 0.5)), jnp.log1p(-jnp.where(small, 0.5, outer)))

    return f


def counting(
    name: str, doc: str, shapes: str, logpmf: Function, *, support: Function, valid: Function, safe: Function
) -> Distribution:
    """A distribution of whole numbers with a location; the others have probability 0.

    Args:
        name, doc, shapes: as of `located`.
        logpmf: `f(y, *shapes)`.
        support: `(y, *shapes)`, which whole numbers can be.
        valid: `(*shapes)`, which shapes make sense; results are NaN for others.
        safe: `(*shapes)`, a number of positive probability, which stands for others while derivatives are taken.
    """

    def of_number(*args: Any) -> Any:
        k, *params, loc = together(f"{name}.logpmf", *args)
        y = k - loc
        inside = support(y, *params) & (jnp.floor(y) == y)
        out = jnp.where(inside, logpmf(jnp.where(inside, y, safe(*params)), *params), -math.inf)
        return jnp.where(valid(*params) & (y == y), out, math.nan)

    return Distribution(name, doc, {"logpmf": taking(of_number, f"k {shapes} loc", (0,))})


def plain(name: str, doc: str, arguments: str, functions: Mapping[str, Function]) -> Distribution:
    """A distribution without location: functions of arguments in one dtype and shape."""

    def make(key: str, body: Function) -> Function:
        return taking(lambda *args: body(*together(f"{name}.{key}", *args)), arguments)

    return Distribution(name, doc, {key: make(key, f) for key, f in functions.items()})
