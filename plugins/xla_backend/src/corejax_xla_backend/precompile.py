"""Compile functions before their first call: one at once, or several of them on all cores."""

from __future__ import annotations

import contextvars
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

from corejax.extend import fun_name
from corejax.extend.messages import api_boundary
from corejax_xla_backend._exit import inside


class _Pool(NamedTuple):
    threads: ThreadPoolExecutor
    compilations: list[Future[None]]


_pool: contextvars.ContextVar[_Pool | None] = contextvars.ContextVar("corejax_compiling_together", default=None)


@api_boundary
def precompile(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
    """Compile a jitted function for arguments of some types, so that its first call with such arguments only runs.

    Inside a block `with corejax.compiling_together():` this returns as soon as the function is traced, and the
    compiler works in the background until the block ends.

    Args:
        fun: a function that `corejax.jit` returned. The wrapped function runs only on tracers.
        *args: positional arguments of a call. Each array may be replaced by a `ShapeDtypeStruct`, whose `sharding`
            says where the array will be. Static arguments are passed as in a call.
        **kwargs: keyword arguments of a call, in the same form.

    Raises:
        TypeError: `fun` is not a jitted function; or an argument is neither an array nor a type.
    """
    compilation = getattr(fun, "_compilation", None)
    if compilation is None:
        raise TypeError(
            f"precompile: expected a function that corejax.jit returned, got {fun_name(fun)!r} of type "
            f"{type(fun).__name__}; pass corejax.jit({fun_name(fun)}), and call the same jitted function afterwards"
        )
    compile_now = compilation(*args, **kwargs)
    pool = _pool.get()
    if pool is None:
        compile_now()
    else:
        pool.compilations.append(pool.threads.submit(_run, compile_now))


def _run(compile_now: Callable[[], object]) -> None:
    with inside():  # Python must not end the thread while MLIR lowers
        compile_now()


@contextmanager
def compiling_together() -> Iterator[None]:
    """Compile what `precompile` is called with inside the block at the same time, on all cores.

    The end of the block waits for the compilations. If one fails, its error is raised there; if the block itself
    raises, compilations that have not started are dropped.
    """
    pool = _Pool(ThreadPoolExecutor(os.cpu_count(), "corejax-precompile"), [])
    token = _pool.set(pool)
    try:
        yield
        for compilation in pool.compilations:
            compilation.result()
    finally:
        _pool.reset(token)
        pool.threads.shutdown(wait=False, cancel_futures=True)
