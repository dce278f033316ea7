"""Functions of other libraries that compiled programs call: XLA's typed foreign function interface (FFI)."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any

from ._interrupts import uninterrupted
from ._probe import xla_client

_TYPED = 1  # the API version of handlers that XLA_FFI_DEFINE_HANDLER makes

_lock = threading.Lock()
_registered: dict[tuple[str, str], int] = {}


def _address(capsule: Any) -> int:
    name, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(pointer(capsule, name(capsule)))


def capsule_of(address: int) -> Any:
    """Return a PyCapsule around the address of a function."""
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return make(address, b"xla._CUSTOM_CALL_TARGET", None)


def register_ffi_target(name: str, capsule: Any, platform: str) -> None:
    """Register a handler with XLA; registering the same handler again has no effect.

    Raises:
        ValueError: another handler is registered by that name on that platform.
    """
    address = _address(capsule)
    with _lock:
        earlier = _registered.setdefault((name, platform), address)
        if earlier != address:
            raise ValueError(
                f"FFI target {name!r} on platform {platform!r} is registered with another handler; a target keeps "
                "its handler as long as the process runs. Choose another name, for example one with your "
                "package's ('acme.scale')."
            )
        xla_client.register_custom_call_target(name, capsule, platform=platform, api_version=_TYPED)
        if platform == "cpu":  # a call lists its batch axes; other platforms' plugins register this themselves
            xla_client.register_custom_call_as_batch_partitionable(name)


def register_ffi_type(name: str, capsules: dict[str, Any], platform: str) -> None:
    """Register a type of a kernel's state: the capsules of its `type_id`, and optionally its `type_info`."""
    xla_client.register_custom_type(name, capsules, platform=platform)


def include_dir() -> str:
    """Return the folder that contains `xla/ffi/api/ffi.h`."""
    import jaxlib

    return str(Path(str(jaxlib.__file__)).parent / "include")


@cache
def register_lapack() -> None:
    """Register jaxlib's LAPACK kernels with XLA (`lapack_spotrf_ffi` and so on)."""
    with uninterrupted():
        from jaxlib import lapack
        from jaxlib.cpu import _lapack

        with _lapack_addresses():
            _lapack.initialize()
    for name, capsule, version in lapack.registrations()["cpu"]:
        if version == _TYPED:
            register_ffi_target(name, capsule, "cpu")


@contextmanager
def _lapack_addresses() -> Iterator[None]:
    """Import SciPy's tables of the addresses of BLAS and LAPACK, without the package `scipy.linalg` around them.

    jaxlib imports the two modules by name. They need nothing of `scipy.linalg`, and importing that package takes ten
    times as long as everything else that this process does before it can run a kernel. So the modules are put into
    `sys.modules` for the duration of the block. A later import of `scipy.linalg` imports them as usual.
    """
    names: list[str] = []
    try:
        if "scipy.linalg" not in sys.modules:
            import scipy  # type: ignore[import-untyped]  # no annotations

            for name in ("scipy.linalg.cython_blas", "scipy.linalg.cython_lapack"):
                spec = PathFinder.find_spec(name, [f"{folder}/linalg" for folder in scipy.__path__])
                if spec is not None and spec.loader is not None:  # otherwise jaxlib imports the package
                    names.append(name)
                    sys.modules[name] = module = module_from_spec(spec)
                    spec.loader.exec_module(module)
        yield
    finally:
        for name in names:
            sys.modules.pop(name, None)
