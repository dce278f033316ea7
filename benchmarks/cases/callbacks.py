"""Calls of compiled functions that call Python back: each time, and where a branch that is not taken would."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from cases.loops import both
from cases.registry import CASES, Case, X, blocking

Called = Callable[[Any, Any], Any]


def _host(lib: Any, x: Any) -> Any:
    return lib.pure_callback(np.asarray, lib.ShapeDtypeStruct(x.shape, x.dtype), x)


def _written(lib: Any, x: Any, **options: Any) -> Any:
    return importlib.import_module(f"{lib.__name__}.experimental").io_callback(
        np.asarray, lib.ShapeDtypeStruct(x.shape, x.dtype), x, **options
    )


def _seen(lib: Any, x: Any) -> Any:
    lib.debug.callback(lambda x: None, x)
    return x


CALLED: dict[str, tuple[Called, float]] = {
    "pure_callback": (_host, 1.1),
    "pure_callback in a branch that is not taken": (
        lambda lib, x: lib.lax.cond(x[0] > 5, lambda: _host(lib, x), lambda: x),
        2.2,
    ),
    "io_callback": (_written, 0.5),
    "io_callback, ordered": (lambda lib, x: _written(lib, x, ordered=True), 0.4),
    "debug.callback": (_seen, 0.4),
}


def _call(called: Called) -> Callable[[Any], Callable[[], Any]]:
    def side(lib: Any) -> Callable[[], Any]:
        f = lib.jit(lambda x: called(lib, x) + 1)
        x = f(X)
        return blocking(lib, lambda: f(x))

    return side


for _name, (_called, _wanted) in CALLED.items():
    CASES.append(
        Case(f"jitted call with {_name}", _wanted, lambda called=_called: both(_call(called)), short=True)  # type: ignore[misc]
    )
