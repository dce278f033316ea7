"""Check mixed dtypes and negative axes, which abstract eval should refuse or all rules support; and weak results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import corejax
from corejax.extend import MissingRuleError, stage_closed, vmap_rules
from corejax_testing.arrays import compare, is_inexact
from corejax_testing.calls import Call, accepts, host
from corejax_testing.checks.compiled import RULE as TRANSLATION
from corejax_testing.checks.compiled import translates
from corejax_testing.checks.evaluation import check_types
from corejax_testing.checks.programs import check_programs
from corejax_testing.checks.registry import check
from corejax_testing.checks.transposition import check_vjp
from corejax_testing.outcomes import CheckFailure, NotApplicable

_REFUSE = "refuse it in abstract eval (TypeError, ValueError), or support it in every rule"
_DTYPES = tuple(np.dtype(t) for t in (np.float64, np.float16, np.int32, np.complex64))


@check("bad_types", "abstract_eval", limit=2)
def check_bad_types(call: Call, rng: np.random.Generator) -> None:
    """Check that abstract eval refuses mixed dtypes and negative axes, or that every rule supports them."""
    tried = False
    for name, there in (*_mixed(call), *_negative_axes(call)):
        tried = True
        if not accepts(there):
            continue
        for rule, run in _WAYS:
            try:
                run(there, rng)
            except (NotApplicable, MissingRuleError):
                continue
            except Exception as error:
                message = f"abstract eval accepts {name}, but {rule} fails: {error}"
                raise CheckFailure(message, "abstract_eval", _REFUSE) from error
    if not tried:
        raise NotApplicable("no two operands of one dtype, and no parameter that names axes")


def _mixed(call: Call) -> Iterator[tuple[str, Call]]:
    """Yield the application with one of several operands of the same dtype in another dtype."""
    if "higher_order" in call.primitive.tags:
        return
    for i, x in enumerate(call.values[:4]):
        alike = sum(y.dtype == x.dtype for y in call.values)
        for dtype in _DTYPES if alike > 1 and is_inexact(x.dtype) else ():
            if dtype != x.dtype and (x.dtype.kind != "c" or dtype.kind == "c"):
                values = [y.astype(dtype) if k == i else y for k, y in enumerate(call.values)]
                yield f"mixed dtypes ({', '.join(v.dtype.name for v in values)})", call.at(values)


def _negative_axes(call: Call) -> Iterator[tuple[str, Call]]:
    """Yield the application with axes counted from the end, with one axis twice, and with an axis out of range."""
    most = max((x.ndim for x in call.values), default=0)
    for name, value in call.params.items() if "higher_order" not in call.primitive.tags else ():
        if not most or not re.search(r"ax[ie]s|(?<!n)dim|perm", name):
            continue
        axes = value if isinstance(value, tuple) else (value,)
        if not axes or any(type(a) is not int for a in axes):
            continue
        others = [tuple(a - most for a in axes), (axes[0] - most, *axes[1:]), (*axes[:-1], most)]
        others += [(axes[0],) * len(axes)] if len(axes) > 1 else []
        for other in dict.fromkeys(others):
            new = other if isinstance(value, tuple) else other[0]
            yield f"{name}={new!r}", replace(call, params={**call.params, name: new})


# -- every rule ----------------------------------------------------------------------------------------------------


def _vmap(call: Call, rng: np.random.Generator) -> None:
    """Compare vmap with a loop, for a batch of two in front and at the end."""
    if vmap_rules.find(call.primitive) is None:
        raise NotApplicable("no vmap rule")
    for axis in (0, -1):
        other = call.again(rng)
        batch = [np.stack([x, y], axis) for x, y in zip(call.values, other.values, strict=True)]
        got = host(corejax.vmap(call.__call__, in_axes=axis)(*batch))
        for k, one in enumerate((call, other)):
            for out, right in zip(got, host(one(*one.values)), strict=True):
                compare(out[k], right, f"element {k} of a batch", "vmap", scale=4 * call.example.tolerance)


def _compiled(call: Call, rng: np.random.Generator) -> None:
    if not translates(call):
        raise NotApplicable("no translation")
    outs = host(corejax.jit(lambda *values: call(*values))(*call.values))
    for out, right in zip(outs, host(call(*call.values)), strict=True):
        compare(out, right, "the compiled result", TRANSLATION, scale=call.example.tolerance)


_WAYS: tuple[tuple[str, Any], ...] = (
    ("evaluating", check_types),
    ("tracing", check_programs),
    ("vmap", _vmap),
    ("vjp", check_vjp),
    ("compiling", _compiled),
)


_WEAK_HINT = "in the rule, NumPy's numbers are strongly typed, and Python's numbers are weakly typed"


@check("weak_results", "jvp", limit=2)
def check_weak_results(call: Call, rng: np.random.Generator) -> None:
    """Check that batched and differentiated results of weakly typed operands are as weak as abstract eval returns."""
    if not call.values or "higher_order" in call.primitive.tags:
        raise NotApplicable("its program fixes its types, or it has no operands")
    for flags in _choices(len(call.values)):
        avals = tuple(a.update(weak_type=weak) for a, weak in zip(call.avals, flags, strict=True))
        closed = stage_closed(call.__call__, avals)
        wanted = [a.weak_type for a in call.types(avals)]
        programs = [("the program", "abstract_eval", closed)]
        programs += [(f"the {rule} rule", rule, change(closed)) for rule, change in call.transforms().items()]
        for name, rule, program in programs:
            got = [a.weak_type for a in program.out_avals[: len(wanted)]]
            if got != wanted:
                shown = ", ".join(a.str_short() for a in avals)
                message = (
                    f"{name} of ({shown}) returns results of which {_words(got)}; "
                    f"according to abstract eval, {_words(wanted)}"
                )
                raise CheckFailure(message, rule, _WEAK_HINT)


def _choices(count: int) -> Iterator[list[bool]]:
    """Yield flags of weak operands: none, all, and each alone."""
    yield [False] * count
    yield [True] * count
    if 1 < count <= 4:
        yield from ([k == one for k in range(count)] for one in range(count))


def _words(flags: list[bool]) -> str:
    weak = [k for k, flag in enumerate(flags) if flag]
    return f"{weak} are weakly typed" if weak else "none is weakly typed"
