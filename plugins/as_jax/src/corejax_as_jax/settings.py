"""JAX's settings that corejax lacks and programs may set: they do not change what a program computes."""

from __future__ import annotations

from typing import Any

from corejax import config

# Logs, places in programs, caches, processes, and ways to compute the same. A setting that asks for something that
# corejax does not do, such as `jax_dump_ir_to`, is not here, so that setting it raises an error.
WITHOUT_EFFECT: dict[str, Any] = {
    "array_garbage_collection_guard": None,
    "bcoo_cusparse_lowering": False,
    "captured_constants_report_frames": 0,
    "captured_constants_warn_bytes": 2000000000,
    "compilation_cache_include_metadata_in_key": False,
    "compiler_detailed_logging_min_ops": 10,
    "compiler_enable_remat_pass": True,
    "cpu_collectives_implementation": "gloo",
    "distributed_debug": False,
    "enable_pgle": False,
    "enable_preemption_service": True,
    "enable_recoverability": False,
    "hlo_source_file_canonicalization_regex": None,
    "include_full_tracebacks_in_locations": True,
    "logging_level": "NOTSET",
    "persistent_cache_enable_xla_caches": "xla_gpu_per_fusion_autotune_cache_dir",
    "pgle_aggregation_percentile": 90,
    "pgle_profiling_runs": 3,
    "pprint_use_color": True,
    "remove_size_one_mesh_axis_from_type": False,
    "send_traceback_to_runtime": "off",
    "share_binary_between_hosts": False,
    "share_binary_between_hosts_timeout_ms": 1200000,
    "softmax_custom_jvp": False,
    "threefry_gpu_kernel_lowering": False,
    "traceback_in_locations_limit": 100,
    "tracer_error_num_traceback_frames": 5,
    "use_direct_linearize": True,
    "use_magma": "auto",
    "use_shardy_partitioner": True,
}


def declare() -> None:
    """Declare these settings, which keep any value."""
    for name, default in WITHOUT_EFFECT.items():
        config.add_setting(name, default)
