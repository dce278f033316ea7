"""Which distribution has what, for messages where it is not installed; the kernel needs none of them."""

from __future__ import annotations

_NAMES = {
    "corejax-lax-basic": "lax default_matmul_precision",
    "corejax-numpy": "numpy nn image ops dlpack flatten_util",
    "corejax-control-flow": (
        "lax.composite lax.cond lax.cond_p lax.switch lax.scan lax.scan_p lax.while_loop lax.while_p lax.fori_loop "
        "lax.map lax.ProgressBar lax.optimization_barrier lax.optimization_barrier_p lax.linear_solve_p "
        "lax.custom_linear_solve lax.custom_root lax.dce_sink lax.dce_sink_p lax.associative_scan checkpoint "
        "checkpoint_name "
        "checkpoint_policies ad_checkpoint remat named_call named_scope closure_convert custom_gradient custom_jvp "
        "custom_vjp custom_vmap custom_batching custom_derivatives"
    ),
    "corejax-random": (
        "debug_key_reuse default_prng_impl enable_custom_prng experimental.key_reuse lax.RandomAlgorithm "
        "lax.rng_bit_generator lax.rng_bit_generator_p lax.rng_uniform lax.rng_uniform_p legacy_prng_key "
        "nn.initializers.delta_orthogonal nn.initializers.glorot_normal nn.initializers.glorot_uniform "
        "nn.initializers.he_normal nn.initializers.he_uniform nn.initializers.kaiming_normal "
        "nn.initializers.kaiming_uniform nn.initializers.lecun_normal nn.initializers.lecun_uniform "
        "nn.initializers.normal nn.initializers.orthogonal nn.initializers.truncated_normal nn.initializers.uniform "
        "nn.initializers.variance_scaling nn.initializers.xavier_normal nn.initializers.xavier_uniform random "
        "threefry_partitionable"
    ),
    "corejax-linalg": "lax.linalg numpy.linalg numpy.polyfit numpy.roots scipy.linalg",
    "corejax-fft": "lax.FftType lax.fft lax.fft_p numpy.fft",
    "corejax-scipy": (
        "scipy scipy.cluster scipy.cluster.vq scipy.fft scipy.integrate scipy.interpolate scipy.ndimage "
        "scipy.optimize scipy.signal scipy.sparse scipy.sparse.linalg scipy.spatial scipy.spatial.transform "
        "scipy.special scipy.stats"
    ),
    "corejax-xla-backend": (
        "Device Shard block_until_ready compilation_cache copy_to_host_async core debug default_backend default_device "
        "device_count device_get device_put devices distributed effects_barrier "
        "experimental.compilation_cache.compilation_cache experimental.io_callback "
        "experimental.topologies "
        "explain_cache_misses export ffi fwd_and_bwd io_callback jit lax.platform_dependent lax.platform_index_p "
        "lax.sharding_constraint_p lax.with_sharding_constraint live_arrays local_device_count local_devices "
        "log_compiles memory "
        "make_array_from_callback make_array_from_process_local_data make_array_from_single_device_arrays "
        "print_environment_info process_count process_index process_indices profiler pure_callback sharding stages "
        "sharding.factors_of "
        "transfer_guard transfer_guard_device_to_device transfer_guard_device_to_host transfer_guard_host_to_device "
        "xla_computation"
    ),
    "corejax-testing": "test_util",
    "corejax-checkify": "checkify experimental.checkify",
    "corejax-checkpoints": "checkpoints",
    "corejax-jet": "experimental.jet",
    "corejax-parallel": (
        "lax.all_gather lax.all_gather_invariant_p lax.all_gather_p lax.all_to_all lax.all_to_all_p lax.axis_index "
        "lax.axis_index_p lax.axis_size lax.pbroadcast lax.pcast lax.pmax lax.pmax_p lax.pmean lax.pmin lax.pmin_p "
        "lax.ppermute lax.ppermute_p lax.pshuffle lax.psum lax.psum_p lax.psum_scatter lax.pswapaxes lax.pvary_p "
        "lax.ragged_all_to_all "
        "lax.ragged_all_to_all_p lax.reduce_scatter_p "
        "NamedSharding P make_mesh pmap reshard set_mesh shard_map smap sharding.AbstractDevice sharding.AbstractMesh "
        "sharding.AxisType sharding.Mesh "
        "sharding.NamedSharding sharding.PartitionSpec sharding.auto_axes sharding.explicit_axes "
        "sharding.get_abstract_mesh sharding.get_mesh "
        "experimental.custom_partitioning experimental.mesh_utils experimental.multihost_utils experimental.pjit "
        "experimental.shard_map sharding.either_axes sharding.in_context sharding.split_axes sharding.split_rules "
        "sharding.reshard sharding.set_mesh sharding.use_abstract_mesh sharding.use_mesh"
    ),
    "corejax-libraries": "example_libraries.optimizers example_libraries.stax experimental.ode",
    "corejax-explain": "draw_jaxpr explain",
}

# Names of the facade and its namespaces whose plugin may not be installed: name -> distribution that has it.
KNOWN_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

_PRIMITIVES = {
    "corejax-lax-basic": (
        "abs acos acosh add after_all and approx_top_k argmax argmin asin asinh atan atan2 atanh bessel_i0e "
        "bessel_i1e bitcast_convert_type broadcast_in_dim cbrt ceil clamp clz complex concatenate conj copy "
        "conv_general_dilated convert_element_type cos cosh create_token cumlogsumexp cummax cummin cumprod cumsum "
        "digamma div dot_general dynamic_slice dynamic_update_slice empty eq eq_to erf erf_inv erfc exp exp2 expm1 "
        "floor gather ge gt igamma igamma_grad_a igammac imag integer_pow iota is_finite le le_to lgamma log log1p "
        "logistic lt lt_to max min mul mulhi ne neg nextafter not or pad polygamma population_count pow "
        "ragged_dot_general random_gamma_grad real reduce reduce_and reduce_max reduce_min reduce_or "
        "reduce_precision reduce_prod reduce_sum reduce_window reduce_window_max reduce_window_min "
        "reduce_window_sum reduce_xor regularized_incomplete_beta rem reshape rev round rsqrt scaled_dot scatter "
        "scatter-add scatter-max scatter-min scatter-mul scatter-sub scatter_apply select_and_gather_add "
        "select_and_scatter select_and_scatter_add select_n shift_left shift_right_arithmetic shift_right_logical "
        "sign sin sinh slice sort split sqrt square squeeze stack stage stop_gradient sub tan tanh tile top_k "
        "transpose "
        "unstack xor zeta"
    ),
    "corejax-control-flow": (
        "composite cond custom_jvp_call custom_lin custom_linear_solve custom_vjp_call custom_vmap_call dce_sink "
        "if_taken linear_call "
        "name optimization_barrier progress progress_report remat2 remat_opt scan while"
    ),
    "corejax-random": (
        "random_between random_bits random_clone random_fold_in random_gamma random_seed random_split random_unwrap "
        "random_wrap rng_bit_generator rng_uniform threefry2x32"
    ),
    "corejax-linalg": (
        "cholesky cholesky_update eig eigh geqp3 geqrf hessenberg householder_product lu lu_pivots_to_permutation "
        "ormqr qr schur svd symmetric_product triangular_solve tridiagonal tridiagonal_solve"
    ),
    "corejax-fft": "fft",
    "corejax-scipy": (
        "bessel_jn beta betaln binomial boxcox boxcox1p complex_gamma complex_loggamma cosine_integral dawsn entr "
        "erfcx exp1 expi expn fresnel_c fresnel_s gamma gammasgn hyp1f1 hyp2f1 kl_div log_ndtr logit ndtr ndtri "
        "owens_t poch rel_entr sine_integral spence wofz xlog1py xlogy"
    ),
    "corejax-xla-backend": (
        "call_exported call_exported_tangent debug_callback dim_as_value effectful_call_exported effectful_ffi_call "
        "ffi_call inspect_sharding io_callback ordered_debug_callback ordered_io_callback platform_index "
        "pure_callback sharding_constraint xla_call"
    ),
    "corejax-checkify": "check debug_check",
    "corejax-parallel": (
        "all_gather all_gather_invariant all_to_all axis_index custom_partitioning pmax pmin ppermute psum pvary "
        "ragged_all_to_all reduce_scatter shard_map xla_pmap"
    ),
}

# Primitives, likewise: name -> distribution.
KNOWN_PRIMITIVES = {name: home for home, names in _PRIMITIVES.items() for name in names.split()}

# Commands of `corejax`, likewise.
KNOWN_COMMANDS = {
    **dict.fromkeys(("fuzz", "new-plugin", "verify", "write-manifest"), "corejax-testing"),
    "jaxpr": "corejax-explain",
    "hlo": "corejax-xla-backend",
    "accuracy": "corejax-scipy",
}

# The distributions themselves.
HOMES = frozenset(_NAMES)
