"""Everything that this plugin knows about jaxlib; no other module imports it.

jaxlib's API is private to jax and changes between releases, without notice or documentation: what is written
here was read from signatures and tried, on 0.10.2 and 0.12.0, without jax and beside it. Importing this
package loads jaxlib (and raises :class:`JaxlibError` where that is missing or of another release), but starts
no backend.
"""

from __future__ import annotations

from ._absent import CompileOnlyDevice as CompileOnlyDevice
from ._absent import Topology as Topology
from ._absent import absent as absent
from ._absent import is_absent as is_absent
from ._ahead import AheadProgram as AheadProgram
from ._ahead import compile_ahead as compile_ahead
from ._buffers import Buffer as Buffer
from ._buffers import aligned_copy as aligned_copy
from ._buffers import block_until_ready as block_until_ready
from ._buffers import copy_to as copy_to
from ._buffers import device_of as device_of
from ._buffers import is_committed as is_committed
from ._buffers import is_deleted as is_deleted
from ._buffers import is_immutable as is_immutable
from ._buffers import is_out_of_memory as is_out_of_memory
from ._buffers import is_ready as is_ready
from ._buffers import is_spread as is_spread
from ._buffers import other_memory_of as other_memory_of
from ._buffers import put as put
from ._buffers import start_copy_to_host as start_copy_to_host
from ._client import BackendError as BackendError
from ._client import Device as Device
from ._client import client as client
from ._client import configure as configure
from ._client import cuda_plugin_path as cuda_plugin_path
from ._client import default_backend as default_backend
from ._client import default_device as default_device
from ._client import devices as devices
from ._client import local_devices as local_devices
from ._client import started_clients as started_clients
from ._client import used_before as used_before
from ._custom_partitioner import CustomPartitioner as CustomPartitioner
from ._dispatch import ASK_AGAIN as ASK_AGAIN
from ._dispatch import SMALL as SMALL
from ._dispatch import UNKNOWN as UNKNOWN
from ._dispatch import DispatchRegistry as DispatchRegistry
from ._dispatch import fast_dispatch as fast_dispatch
from ._dispatch import make_fastpath_data as make_fastpath_data
from ._dispatch_state import NO_CONTEXT as NO_CONTEXT
from ._dispatch_state import before_jax as before_jax
from ._dispatch_state import dispatch_context as dispatch_context
from ._distributed import connect as connect
from ._distributed import connection as connection
from ._distributed import disconnect as disconnect
from ._executable import COMPILE_ERRORS as COMPILE_ERRORS
from ._executable import Executable as Executable
from ._executable import compile_module as compile_module
from ._executable import hlo_cost_analysis as hlo_cost_analysis
from ._executable import is_unimplemented as is_unimplemented
from ._executable import load as load
from ._fingerprint import compilation_fingerprint as compilation_fingerprint
from ._foreign import capsule_of as capsule_of
from ._foreign import include_dir as include_dir
from ._foreign import register_ffi_target as register_ffi_target
from ._foreign import register_lapack as register_lapack
from ._interrupts import uninterrupted as uninterrupted
from ._mlir import DTYPES as DTYPES
from ._mlir import element_type as element_type
from ._mlir import from_portable as from_portable
from ._mlir import functions_text as functions_text
from ._mlir import ir as ir
from ._mlir import meshes_text as meshes_text
from ._mlir import module_text as module_text
from ._mlir import new_context as new_context
from ._mlir import parse_module as parse_module
from ._mlir import portable_version as portable_version
from ._mlir import stablehlo_versions as stablehlo_versions
from ._mlir import to_portable as to_portable
from ._mlir import xla_computation as xla_computation
from ._partitioned import PartitionedExecutable as PartitionedExecutable
from ._partitioned import Partitions as Partitions
from ._partitioned import inspecting as inspecting
from ._probe import FEATURES as FEATURES
from ._probe import JaxlibError as JaxlibError
from ._probe import check_version as check_version
from ._quick import PLAIN_FUSIONS as PLAIN_FUSIONS
from ._quick import quick_flags as quick_flags
from ._readback import forget_readers as forget_readers
from ._readback import to_numpy as to_numpy
from ._reference import reference_eval as reference_eval
from ._spread import forget_scalars as forget_scalars
from ._spread import hlo_of_tiles as hlo_of_tiles
from ._spread import join_parts as join_parts
from ._spread import move_parts as move_parts
from ._spread import parts_of as parts_of
from ._spread import place_parts as place_parts
from ._spread import placement as placement
from ._spread import put_each as put_each
from ._spread import put_parts as put_parts
from ._spread import renumbered as renumbered
from ._spread import whole as whole
from ._transfers import set_default_transfer_guards as set_default_transfer_guards
from ._transfers import set_transfer_guards as set_transfer_guards
from ._transfers import transfer_guards as transfer_guards
