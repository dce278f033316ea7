"""Rules of `check` and `debug_check`: a failure joins the error if its kind is enabled, else it is dropped."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Array, ShapedArray
from corejax_checkify.check_primitive import check_p, debug_check_p
from corejax_checkify.interpreter import Checks, checkify_rules
from corejax_checkify.state import ErrorType, as_state
from corejax_lax_basic import lax


@checkify_rules.register(check_p)
@checkify_rules.register(debug_check_p)
def check_checkify(checks: Checks, *leaves: Any, error_type: ErrorType) -> list[Any]:
    """Join the failures of enabled kinds to the current error."""
    if not error_type.kinds & checks.kinds:
        return []
    state = as_state(error_type, leaves)
    if not error_type.kinds <= checks.kinds:
        wanted = np.array([failure.kind in checks.kinds for failure, _ in error_type.failures])
        table = Array(wanted, ShapedArray(wanted.shape, wanted.dtype))
        chosen = lax.dynamic_index_in_dim(table, state.code, 0, keepdims=False)
        state = state._replace(pred=lax.bitwise_and(state.pred, chosen))
    checks.merge(error_type, state)
    return []
