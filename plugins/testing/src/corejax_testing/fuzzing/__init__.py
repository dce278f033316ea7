"""Random well-typed programs over all installed primitives: built, compared in many ways, shrunk where they fail.

corejax fuzz --minutes 5                        # in a shell
corejax_testing.fuzzing.replay(text, values, "jit")   # a program that a report showed, once more

A `Case` is a program with operands. A nest makes another case of a case (its vmap, its gradient, a scan of it,
...); a relation says what has to hold of a case (compiled it gives the same, its jvp is its derivative, ...).
So `jit of vjp of scan` is a relation of nests, and any of them can be asked of any program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from corejax_testing.fuzzing.case import Case as Case
    from corejax_testing.fuzzing.relations import RELATIONS as RELATIONS
    from corejax_testing.fuzzing.reporting import Failure as Failure
    from corejax_testing.fuzzing.reporting import replay as replay
    from corejax_testing.fuzzing.session import Summary as Summary
    from corejax_testing.fuzzing.session import fuzz as fuzz

_LAZY = {
    "Case": "case",
    "Failure": "reporting",
    "RELATIONS": "relations",
    "Summary": "session",
    "fuzz": "session",
    "replay": "reporting",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'corejax_testing.fuzzing' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"corejax_testing.fuzzing.{_LAZY[name]}"), name)
