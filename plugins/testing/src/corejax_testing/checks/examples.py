"""Check the author's examples themselves, which all other checks start from."""

from __future__ import annotations

import numpy as np

from corejax.extend import Example
from corejax.extend.messages import did_you_mean
from corejax_testing.calls import Call
from corejax_testing.checks.registry import CHECKS, check
from corejax_testing.contributions import provided_checks
from corejax_testing.operands import UnfitOperands, drawn
from corejax_testing.outcomes import CheckFailure


def require_sense(example: Example) -> None:
    """Require an example to be valid, so that operands can be drawn for it.

    Raises:
        CheckFailure: the example's names of checks, ranges, `prepare` or `requires` are invalid.
    """
    for name in example.skip:
        if name not in CHECKS and name not in provided_checks():
            close = did_you_mean(name, [*CHECKS, *provided_checks()]).removeprefix("; ")
            hint = close or "corejax verify --list-checks lists them"
            raise CheckFailure(f"an example skips {name!r}, but there is no such check", None, hint)
    for i in range(len(example.operands)):
        try:
            low, high = example.range_of(i)
        except IndexError:
            hint = "give one `low` and `high` for all operands, or one for each"
            raise CheckFailure(f"an example gives no range for operand {i}", None, hint) from None
        if not low <= high:
            raise CheckFailure(f"an example's range of operand {i} is empty: low={low}, high={high}")
    _require_operands(example)


def _require_operands(example: Example) -> None:
    try:
        drawn(example, np.random.default_rng(0))
    except UnfitOperands as error:
        hint = "let `prepare` turn the drawn operands into valid ones, or give arrays that satisfy `requires`"
        raise CheckFailure(str(error), None, hint) from None
    except Exception as error:
        hint = "both are called as f(*operands, **params), with NumPy arrays"
        raise CheckFailure(
            f"the example's `prepare` or `requires` raises {type(error).__name__}: {error}", None, hint
        ) from error


@check("examples", "abstract_eval")
def check_examples(call: Call, rng: np.random.Generator) -> None:
    """Check that there are examples, that they are valid, and that abstract eval accepts them."""
    require_sense(call.example)
    try:
        call.avals_out  # noqa: B018
    except (TypeError, ValueError) as error:
        raise CheckFailure(
            f"abstract eval refuses an example: {error}",
            "abstract_eval",
            "fix the example's shapes, dtypes or params, or what abstract eval accepts",
        ) from error
