"""The check of checkify rules for `corejax verify`. Imported by corejax-testing only."""

from __future__ import annotations

from typing import Any

import numpy as np

import corejax
from corejax.extend import dtypes
from corejax_checkify.api import all_checks, checkify
from corejax_checkify.failures import NaNError
from corejax_checkify.interpreter import checkify_rules
from corejax_testing import Call, Check, CheckFailure, NotApplicable

_HINT = "a rule must return the primitive's results, and add failures to `checks`"


def check_checkify(call: Call, rng: np.random.Generator) -> None:
    """Check that a rule returns the primitive's results, reports NaN only if there is any, and agrees with `jit`."""
    if not checkify_rules.is_written(call.primitive):
        raise NotApplicable("it has no checkify rule, or a derived one")
    if call.primitive.effects:
        raise NotApplicable("it has effects: its results may depend on more than its operands")

    def run(*values: Any) -> Any:
        return call(*values)

    try:
        plain = call(*call.values)
    except Exception as raised:
        raise NotApplicable(f"it does not run: {type(raised).__name__}; other checks report this") from raised
    error, outs = checkify(run, errors=all_checks)(*call.values)
    _same(outs, plain)
    exception = error.get_exception()
    has_nan = any(np.any(np.asarray(x) != np.asarray(x)) for x in plain if dtypes.is_inexact(x.dtype))
    if isinstance(exception, NaNError) and not has_nan:
        raise CheckFailure(f"it reports {str(exception)!r}, but no result has NaN", "checkify", _HINT)
    compiled, _ = corejax.jit(checkify(run, errors=all_checks))(*call.values)
    if type(compiled.get_exception()) is not type(exception):
        raise CheckFailure(f"it reports {error.get()!r}, and {compiled.get()!r} if compiled", "checkify", _HINT)


def _same(got: Any, wanted: Any) -> None:
    for i, (x, y) in enumerate(zip(got, wanted, strict=True)):
        x, y = np.asarray(x), np.asarray(y)
        if x.dtype != y.dtype or x.shape != y.shape or x.tobytes() != y.tobytes():
            raise CheckFailure(f"result {i} is {x!r} with checks, {y!r} without", "checkify", _HINT)


CHECKIFY = Check("checkify", check_checkify, rule="checkify", limit=2)
