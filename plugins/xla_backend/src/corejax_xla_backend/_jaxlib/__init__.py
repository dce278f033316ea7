"""Everything that this plugin knows about jaxlib; no other module imports it.

jaxlib's API is private to jax and changes between releases, without notice or documentation: what is written
here was read from signatures and tried, on 0.10.2 and 0.12.0, without jax and beside it. Importing this
package loads jaxlib (and raises :class:`JaxlibError` where that is missing or of another release), but starts
no backend.
"""

from __future__ import annotations

from ._buffers import Aval as Aval
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
from ._buffers import put as put
from ._buffers import start_copy_to_host as start_copy_to_host
from ._client import BackendError as BackendError
from ._client import Client as Client
from ._client import Device as Device
from ._client import Sharding as Sharding
from ._client import client as client
from ._client import compile_options as compile_options
from ._client import configure as configure
from ._client import cuda_plugin_path as cuda_plugin_path
from ._client import default_backend as default_backend
from ._client import default_device as default_device
from ._client import device_list as device_list
from ._client import device_sharding as device_sharding
from ._client import devices as devices
from ._client import local_devices as local_devices
from ._client import started_clients as started_clients
from ._client import used_before as used_before
from ._dispatch import HOST_TYPES as HOST_TYPES
from ._dispatch import SMALL as SMALL
from ._dispatch import DispatchRegistry as DispatchRegistry
from ._dispatch import fast_dispatch as fast_dispatch
from ._dispatch import make_fastpath_data as make_fastpath_data
from ._dispatch_state import DispatchContext as DispatchContext
from ._dispatch_state import before_jax as before_jax
from ._dispatch_state import dispatch_context as dispatch_context
from ._distributed import connect as connect
from ._distributed import connection as connection
from ._distributed import disconnect as disconnect
from ._executable import COMPILE_ERRORS as COMPILE_ERRORS
from ._executable import Executable as Executable
from ._executable import FastpathData as FastpathData
from ._executable import compile_module as compile_module
from ._executable import hlo_cost_analysis as hlo_cost_analysis
from ._executable import load as load
from ._executable import load_program as load_program
from ._fingerprint import compilation_fingerprint as compilation_fingerprint
from ._foreign import capsule_of as capsule_of
from ._foreign import include_dir as include_dir
from ._foreign import register_ffi_target as register_ffi_target
from ._foreign import register_lapack as register_lapack
from ._interrupts import uninterrupted as uninterrupted
from ._mlir import DTYPES as DTYPES
from ._mlir import ModuleBuilder as ModuleBuilder
from ._mlir import clone as clone
from ._mlir import constant as constant
from ._mlir import dense_attr as dense_attr
from ._mlir import dtype_of as dtype_of
from ._mlir import element_type as element_type
from ._mlir import from_portable as from_portable
from ._mlir import functions_text as functions_text
from ._mlir import ir as ir
from ._mlir import module_name as module_name
from ._mlir import module_text as module_text
from ._mlir import new_context as new_context
from ._mlir import parse_module as parse_module
from ._mlir import portable_version as portable_version
from ._mlir import run_passes as run_passes
from ._mlir import stablehlo_versions as stablehlo_versions
from ._mlir import tensor_type as tensor_type
from ._mlir import to_portable as to_portable
from ._mlir import xla_computation as xla_computation
from ._partitioned import PartitionedExecutable as PartitionedExecutable
from ._partitioned import Partitions as Partitions
from ._partitioned import inspecting as inspecting
from ._partitioned import join_parts as join_parts
from ._partitioned import move_parts as move_parts
from ._partitioned import parts_of as parts_of
from ._partitioned import place_parts as place_parts
from ._partitioned import placement as placement
from ._partitioned import put_each as put_each
from ._partitioned import put_parts as put_parts
from ._partitioned import renumbered as renumbered
from ._partitioned import whole as whole
from ._probe import FEATURES as FEATURES
from ._probe import Features as Features
from ._probe import JaxlibError as JaxlibError
from ._probe import check_version as check_version
from ._readback import forget_readers as forget_readers
from ._readback import to_numpy as to_numpy
from ._reference import reference_eval as reference_eval
from ._transfers import set_transfer_guards as set_transfer_guards
from ._transfers import transfer_guards as transfer_guards
