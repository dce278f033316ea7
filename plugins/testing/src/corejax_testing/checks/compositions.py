"""Check nests of transformations against the meaning of the outermost transformation."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from corejax.extend import MissingRuleError, jvp_rules, vmap_rules, xla_translations
from corejax_testing.arrays import compare_each, is_inexact
from corejax_testing.calls import Call, host
from corejax_testing.checks.registry import check
from corejax_testing.finite import step_and_tolerance
from corejax_testing.outcomes import CheckFailure, NotApplicable
from corejax_testing.transformations import (
    CHECKPOINT,
    COND,
    GRAD,
    JIT,
    JVP,
    LINEARIZE,
    SCAN,
    VMAP,
    WHILE,
    Transformation,
    is_installed,
)


def available(call: Call) -> list[Transformation]:
    """Return the installed transformations that apply to the call."""
    found = []
    if is_installed(JIT) and xla_translations.find(call.primitive) is not None:
        found.append(JIT)
    if call.values and vmap_rules.find(call.primitive) is not None:
        found.append(VMAP)
    try:
        call.moving()
        step_and_tolerance([*call.values, *host(call(*call.values))])
        differentiable = jvp_rules.find(call.primitive) is not None
    except (NotApplicable, ValueError):
        differentiable = False
    if differentiable:
        found += [GRAD] if "reverse_only" in call.primitive.tags else [GRAD, JVP, LINEARIZE]
    return found + [t for t in (COND, SCAN, WHILE, CHECKPOINT) if call.values and is_installed(t)]


def not_installed() -> str:
    """Return a note for the report that names the transformations which no installed plugin provides."""
    names = [t.name for t in (JIT, COND, SCAN, WHILE, CHECKPOINT) if not is_installed(t)]
    return f"without {', '.join(names)}: not installed" if names else ""


def _has_meaning(chain: Sequence[Transformation]) -> bool:
    """Return whether a nest has a meaning: a loop of unknown length has no reverse derivative."""
    return not (WHILE in chain and GRAD in chain[chain.index(WHILE) :])


def compose(call: Call, chain: Sequence[Transformation], rng: np.random.Generator) -> None:
    """Check a nest of transformations, the innermost first, against the meaning of the outermost one.

    Raises:
        CheckFailure: they differ, or the nest raises.
    """
    *inner, outer = chain
    fun: Any
    fun, xs = call.varying()
    both = xs, call.again(rng, call.fixed).varying()[1]
    for transformation in inner:
        inputs = transformation.inputs(fun, both, rng)
        fun, both = transformation.fast(fun, both[0]), inputs
    xs, zs = both[0], outer.inputs(fun, both, rng)[0]
    got, wanted = host(outer.fast(fun, xs)(*zs)), host(outer.slow(fun, xs)(*zs))
    if not all(np.all(np.isfinite(w)) for w in wanted if w.dtype.kind in "fc"):
        return
    allowed = None
    if outer.smooth:
        every = (*xs, *host(fun(*xs)), *wanted)
        allowed = step_and_tolerance([x for x in every if is_inexact(x.dtype)], order=len(chain))[1]
    batches = outer.smooth and VMAP in inner and vmap_rules.is_written(call.primitive)
    rule = VMAP.rule if batches else outer.rule  # of one element, earlier checks differentiate
    compare_each(
        got, wanted, "result", f" of {_named(chain)}", rule, allowed=allowed, scale=10 * call.example.tolerance
    )


def _named(chain: Sequence[Transformation]) -> str:
    return " of ".join(transformation.name for transformation in reversed(chain))


def _check_nests(call: Call, count: int, rng: np.random.Generator) -> None:
    """Check nests of the transformations that apply: all pairs, or the chosen triples."""
    call = call.widened()
    if call.size > 24:
        raise NotApplicable("too many operands for a gradient by differences")
    every = available(call)
    if not every:
        raise NotApplicable("no transformation applies")
    nests = list(itertools.product(every, repeat=2)) if count == 2 else [t for t in _TRIPLES if set(t) <= set(every)]
    effects, tried = call.closed().jaxpr.effects, 0
    for chain in filter(_has_meaning, nests):
        try:
            compose(call, chain, rng)
            tried += 1
        except (CheckFailure, NotApplicable):
            raise
        except Exception as error:
            if _refuses(error, effects):
                continue
            raise CheckFailure(f"{_named(chain)} raises {type(error).__name__}: {error}", chain[-1].rule) from error
    if nests and not tried and effects:
        raise NotApplicable(f"every nest refuses its effects ({', '.join(sorted(effects))})")


def _refuses(error: Exception, effects: Collection[str]) -> bool:
    """Return whether the error says that these effects are not allowed there, as in branches under vmap."""
    refusal = isinstance(error, NotImplementedError) and not isinstance(error, MissingRuleError)
    return refusal and "effects" in str(error) and any(effect in str(error) for effect in effects)


# Innermost first: nests that users write, and nests in which one transformation reads the program of another.
_TRIPLES = (
    (GRAD, VMAP, JIT),
    (VMAP, GRAD, JIT),
    (JIT, GRAD, VMAP),
    (JVP, GRAD, JIT),
    (SCAN, GRAD, VMAP),
    (VMAP, SCAN, GRAD),
    (COND, VMAP, GRAD),
    (SCAN, JVP, SCAN),
    (LINEARIZE, VMAP, SCAN),
    (JIT, SCAN, VMAP),
    (COND, SCAN, JIT),
    (WHILE, JVP, JIT),
    (VMAP, WHILE, VMAP),
    (GRAD, WHILE, JIT),
    (SCAN, WHILE, LINEARIZE),
    (CHECKPOINT, GRAD, JIT),
    (CHECKPOINT, SCAN, GRAD),
    (GRAD, CHECKPOINT, GRAD),
    (CHECKPOINT, VMAP, GRAD),
)


@check("pairs", None, limit=1, note=not_installed)
def check_pairs(call: Call, rng: np.random.Generator) -> None:
    """Check all pairs of jit, vmap, grad, jvp, linearize, checkpoint and bodies of cond, while, scan."""
    _check_nests(call, 2, rng)


@check("triples", None, limit=1, note=not_installed)
def check_triples(call: Call, rng: np.random.Generator) -> None:
    """Check chosen nests of three transformations."""
    _check_nests(call, 3, rng)
