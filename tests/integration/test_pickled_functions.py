"""Public functions are pickled by reference: their module and name lead back to them."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

import corejax


def functions(namespace: ModuleType, seen: set[str]) -> Iterator[tuple[str, Any]]:
    """Each public function in a namespace and in those below it, by its name there."""
    seen.add(namespace.__name__)
    for name in dir(namespace):
        found = None if name.startswith("_") else getattr(namespace, name, None)
        if isinstance(found, ModuleType):
            if found.__name__.startswith("corejax") and found.__name__ not in seen:
                yield from functions(found, seen)
        elif isinstance(found, FunctionType):
            yield f"{namespace.__name__}.{name}", found


def test_every_public_function_comes_back_from_a_pickle() -> None:
    failed, count = [], 0
    for name, function in functions(corejax, set()):
        count += 1
        try:
            assert pickle.loads(pickle.dumps(function)) is function
        except (AssertionError, AttributeError, pickle.PicklingError) as error:
            failed.append(f"{name}: {error}")
    assert count > 900 and not failed, f"{len(failed)} of {count}:\n" + "\n".join(failed)
