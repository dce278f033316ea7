"""jax as an oracle compiles little: with few optimisations, and each program once, for all test processes and runs.

Its programs are kept in `.pytest_cache`, by jax's own cache, whose key has its version, the program and the options.
Corejax's are compiled anew in each process: they are what is tested.
"""

from __future__ import annotations

import functools
import os
import platform
import sys
import threading
from typing import Any

import pytest

from tests import own_process

# Of `config.disable_most_optimizations`; jax's own setting has the other half.
_FLAGS = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1}


def configure(config: pytest.Config) -> None:
    """Before jax is imported, also by processes that tests start."""
    os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
    if hasattr(config, "cache"):  # compiled for this machine's instructions
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(config.cache.mkdir(f"jax-{platform.node()}"))
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
        os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"


def quicken() -> None:
    """Once jax is imported."""
    compiler = sys.modules.get("jax._src.compiler")
    if compiler is None or "JAX_DISABLE_MOST_OPTIMIZATIONS" not in os.environ or hasattr(compiler, "quick_flags"):
        return
    flags = dict(_FLAGS)
    get_compile_options = compiler.get_compile_options
    compiler.quick_flags = flags
    compiler.get_compile_options = lambda *args, env_options_overrides=None, **kwargs: get_compile_options(
        *args, env_options_overrides={**flags, **(env_options_overrides or {})}, **kwargs
    )
    if not own_process.CHILD:  # custom partitioning makes programs while another one is compiled, in the same thread
        _keep_contexts(sys.modules["jax._src.interpreters.mlir"])
    _write_whole_files(sys.modules["jax._src.lru_cache"].LRUCache)


def flags() -> dict[str, Any]:
    """The flags that jax compiles with besides its own, to be changed; none where it compiles as its users have it."""
    return getattr(sys.modules.get("jax._src.compiler"), "quick_flags", {})


def _keep_contexts(mlir: Any) -> None:
    """One MLIR context in each thread: jax makes one for each program, in a tenth of the time that all else takes."""
    make, kept = mlir.make_ir_context, threading.local()

    def make_ir_context() -> Any:
        if not hasattr(kept, "context"):
            kept.context = make()
        return kept.context

    mlir.make_ir_context = make_ir_context


def _write_whole_files(cache: Any) -> None:
    """Other processes find an entry of the cache complete, or not at all."""
    put = cache.put

    @functools.wraps(put)
    def put_whole(self: Any, key: str, value: bytes) -> None:
        path = self.path / f"{key}-cache"
        if self.eviction_enabled:
            put(self, key, value)
        elif not path.exists():
            part = path.with_name(f"{key}-{os.getpid()}-part")
            part.write_bytes(value)
            part.replace(path)

    cache.put = put_whole
