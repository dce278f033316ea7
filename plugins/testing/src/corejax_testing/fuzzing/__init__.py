"""Build random well-typed programs over all installed primitives, check them in many ways, and shrink failures.

corejax fuzz --minutes 5                        # in a shell
corejax_testing.fuzzing.replay(text, values, "jit")   # run a program from a report again

A `Case` is a program with operands. A nest turns a case into another case (its vmap, its gradient, a scan over it,
...). A relation is a property of a case (the compiled results are the same, the jvp is the derivative, ...). So `jit of
vjp of scan` applies the relation `jit` to two nests, and every such combination applies to every program.
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
