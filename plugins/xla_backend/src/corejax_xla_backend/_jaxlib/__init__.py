"""The adapter to jaxlib; no other module of the plugin imports jaxlib.

jaxlib's API is private to jax and changes between releases, without notice or documentation. This code was
written from signatures and experiments, on 0.10.2 and 0.12.0, with and without jax in the process. Importing
this package loads jaxlib (and raises :class:`JaxlibError` if jaxlib is missing or of an unsupported release),
but starts no backend.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from corejax.extend import BackendError

from ._absent import CompileOnlyDevice, Topology, is_absent
from ._ahead import AheadProgram, compile_ahead
from ._bare_dispatch import STORED, bare_dispatch, bare_fastpath_data
from ._buffers import (
    LARGE,
    aligned_copy,
    block_until_ready,
    copy_to,
    device_of,
    dlpack_of,
    is_committed,
    is_deleted,
    is_immutable,
    is_out_of_memory,
    is_ready,
    is_spread,
    other_memory_of,
    put,
    start_copy_to_host,
)
from ._classes import Buffer, Device
from ._client import (
    check_cpu_devices,
    client,
    cuda_plugin_path,
    default_backend,
    default_device,
    devices,
    local_devices,
    started_clients,
    used_before,
)
from ._custom_partitioner import CustomPartitioner
from ._dispatch import ASK_AGAIN, SMALL, UNKNOWN, DispatchRegistry, fast_dispatch, make_fastpath_data
from ._dispatch_state import NO_CONTEXT, before_jax, dispatch_context
from ._distributed import connect, connection, disconnect
from ._executable import Executable, compile_module, hlo_cost_analysis, is_unimplemented, load
from ._fingerprint import compilation_fingerprint
from ._foreign import capsule_of, include_dir, register_ffi_target, register_ffi_type, register_lapack
from ._interrupts import uninterrupted
from ._partitioned import PartitionedExecutable, Partitions, inspecting
from ._probe import FEATURES, JaxlibError, check_version, core
from ._quick import PLAIN_FUSIONS, quick_flags
from ._readback import forget_readers, to_numpy
from ._spread import (
    forget_scalars,
    hlo_of_tiles,
    join_parts,
    move_parts,
    parts_of,
    place_parts,
    placement,
    put_each,
    put_parts,
    renumbered,
    whole,
)
from ._transfers import set_default_transfer_guards, set_transfer_guards, transfer_guards

if TYPE_CHECKING:
    from ._mlir import (
        COMPILE_ERRORS,
        DTYPES,
        call_module,
        dense_attr,
        element_type,
        from_portable,
        functions_text,
        ir,
        meshes_text,
        module_text,
        new_context,
        parse_module,
        portable_version,
        stablehlo_versions,
        to_portable,
        written_module,
        xla_computation,
    )
    from ._reference import reference_eval
else:

    def __getattr__(name: str) -> Any:
        """Import MLIR's bindings when a program is compiled; `jit` does without them."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home = "_reference" if name == "reference_eval" else "_mlir"
        value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
        return value


pytrees = core.pytree
"""jaxlib's own module of pytrees."""

__all__ = [
    "ASK_AGAIN",
    "COMPILE_ERRORS",
    "DTYPES",
    "FEATURES",
    "LARGE",
    "NO_CONTEXT",
    "PLAIN_FUSIONS",
    "SMALL",
    "STORED",
    "UNKNOWN",
    "AheadProgram",
    "BackendError",
    "Buffer",
    "CompileOnlyDevice",
    "CustomPartitioner",
    "Device",
    "DispatchRegistry",
    "Executable",
    "JaxlibError",
    "PartitionedExecutable",
    "Partitions",
    "Topology",
    "aligned_copy",
    "bare_dispatch",
    "bare_fastpath_data",
    "before_jax",
    "block_until_ready",
    "call_module",
    "capsule_of",
    "check_cpu_devices",
    "check_version",
    "client",
    "compilation_fingerprint",
    "compile_ahead",
    "compile_module",
    "connect",
    "connection",
    "copy_to",
    "cuda_plugin_path",
    "default_backend",
    "default_device",
    "dense_attr",
    "device_of",
    "devices",
    "disconnect",
    "dispatch_context",
    "dlpack_of",
    "element_type",
    "fast_dispatch",
    "forget_readers",
    "forget_scalars",
    "from_portable",
    "functions_text",
    "hlo_cost_analysis",
    "hlo_of_tiles",
    "include_dir",
    "inspecting",
    "ir",
    "is_absent",
    "is_committed",
    "is_deleted",
    "is_immutable",
    "is_out_of_memory",
    "is_ready",
    "is_spread",
    "is_unimplemented",
    "join_parts",
    "load",
    "local_devices",
    "make_fastpath_data",
    "meshes_text",
    "module_text",
    "move_parts",
    "new_context",
    "other_memory_of",
    "parse_module",
    "parts_of",
    "place_parts",
    "placement",
    "portable_version",
    "put",
    "put_each",
    "put_parts",
    "pytrees",
    "quick_flags",
    "reference_eval",
    "register_ffi_target",
    "register_ffi_type",
    "register_lapack",
    "renumbered",
    "set_default_transfer_guards",
    "set_transfer_guards",
    "stablehlo_versions",
    "start_copy_to_host",
    "started_clients",
    "to_numpy",
    "to_portable",
    "transfer_guards",
    "uninterrupted",
    "used_before",
    "whole",
    "written_module",
    "xla_computation",
]
