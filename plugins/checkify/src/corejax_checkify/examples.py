"""Example applications of `check` and `debug_check`, for checks of their rules."""

from __future__ import annotations

import numpy as np

from corejax.extend import Example, tree
from corejax_checkify.failures import FailedCheckError, Failure
from corejax_checkify.state import ErrorType, typed

_TEXT = {"text": "types of errors do not print as text that parses"}
_REFUSED = dict.fromkeys(
    ("xla", "stablehlo", "repeatable", "pairs", "triples", "cost"),
    "a check cannot be compiled unless it is functionalized",
)


def check_examples(primitive: str) -> list[Example]:
    """Return checks that pass, with and without a payload."""
    passed, code = np.bool_(False), np.int32(0)
    skip = _TEXT | _REFUSED if primitive == "check" else _TEXT
    examples = []
    for payload in ([], [np.float32(2.0), np.arange(3, dtype=np.int32)]):
        structure = tree.tree_structure((tuple(payload), {}))
        types = typed(payload)
        failure = Failure(FailedCheckError, ("it is {} of {}" if payload else "it is not", structure), None)
        params = {"error_type": ErrorType([(failure, types)], [types] if types else [])}
        examples.append(Example([passed, code, *payload], params, reference=lambda *_, **params: [], skip=skip))
    return examples
