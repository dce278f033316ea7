"""What each distribution of this repository provides. Written by `make manifests`; do not edit."""

PROVIDED: dict[str, dict[str, str]] = {
    "corejax-checkify": {
        "names": "checkify experimental.checkify",
        "primitives": "check debug_check",
    },
    "corejax-checkpoints": {
        "names": "checkpoints",
    },
    "corejax-control-flow": {
        "names": (
            "ad_checkpoint checkpoint checkpoint_name checkpoint_policies closure_convert custom_batching "
            "custom_derivatives custom_gradient custom_jvp custom_vjp custom_vmap lax.ProgressBar lax.composite "
            "lax.cond lax.cond_p lax.custom_linear_solve lax.custom_root lax.dce_sink lax.dce_sink_p lax.fori_loop "
            "lax.linear_solve_p lax.map lax.optimization_barrier lax.optimization_barrier_p lax.scan lax.scan_p "
            "lax.switch lax.while_loop lax.while_p named_call named_scope remat"
        ),
        "primitives": (
            "composite cond custom_jvp_call custom_lin custom_linear_solve custom_vjp_call custom_vmap_call dce_sink "
            "if_taken linear_call name optimization_barrier progress progress_report remat2 remat_opt scan while"
        ),
        "operations": "loop",
    },
    "corejax-eager": {
        "names": "eager_engine",
    },
    "corejax-explain": {
        "names": "debug_checks draw_jaxpr explain program_graph",
        "commands": "jaxpr",
    },
    "corejax-fft": {
        "names": "lax.FftType lax.fft lax.fft_p numpy.fft",
        "primitives": "fft",
    },
    "corejax-jet": {
        "names": "experimental.jet",
    },
    "corejax-lax-basic": {
        "names": "default_matmul_precision lax",
        "primitives": (
            "abs acos acosh add after_all and approx_top_k argmax argmin asin asinh atan atan2 atanh bessel_i0e "
            "bessel_i1e bitcast_convert_type broadcast_in_dim cbrt ceil clamp clz complex concatenate conj "
            "conv_general_dilated convert_element_type copy cos cosh create_token cumlogsumexp cummax cummin cumprod "
            "cumsum digamma div dot_general dynamic_slice dynamic_update_slice empty eq eq_to erf erf_inv erfc exp "
            "exp2 expm1 floor gather ge gt igamma igamma_grad_a igammac imag integer_pow iota is_finite le le_to "
            "lgamma log log1p logistic lt lt_to max min mul mulhi ne neg nextafter not or pad polygamma "
            "population_count pow ragged_dot_general random_gamma_grad real reduce reduce_and reduce_max reduce_min "
            "reduce_or reduce_precision reduce_prod reduce_sum reduce_window reduce_window_max reduce_window_min "
            "reduce_window_sum reduce_xor regularized_incomplete_beta rem reshape rev round rsqrt scaled_dot scatter "
            "scatter-add scatter-max scatter-min scatter-mul scatter-sub scatter_apply select_and_gather_add "
            "select_and_scatter select_and_scatter_add select_n shift_left shift_right_arithmetic shift_right_logical "
            "sign sin sinh slice sort split sqrt square squeeze stack stage stop_gradient sub tan tanh tile top_k "
            "transpose unstack xor zeta"
        ),
        "array_methods": (
            "T __abs__ __add__ __and__ __divmod__ __eq__ __floordiv__ __ge__ __getitem__ __gt__ __invert__ __le__ "
            "__lshift__ __lt__ __matmul__ __mod__ __mul__ __ne__ __neg__ __or__ __pos__ __pow__ __radd__ __rand__ "
            "__rdivmod__ __rfloordiv__ __rlshift__ __rmatmul__ __rmod__ __rmul__ __ror__ __rpow__ __rrshift__ "
            "__rshift__ __rsub__ __rtruediv__ __rxor__ __sub__ __truediv__ __xor__ astype at conj conjugate copy imag "
            "mT real reshape transpose"
        ),
        "operations": "add astype broadcast_axis index_axis move_axis reshape stack zeros",
    },
    "corejax-libraries": {
        "names": "example_libraries.optimizers example_libraries.stax experimental.ode",
    },
    "corejax-linalg": {
        "names": "lax.linalg numpy.linalg numpy.polyfit numpy.roots scipy.linalg",
        "primitives": (
            "cholesky cholesky_update eig eigh geqp3 geqrf hessenberg householder_product lu lu_pivots_to_permutation "
            "ormqr qr schur svd symmetric_product triangular_solve tridiagonal tridiagonal_solve"
        ),
    },
    "corejax-numpy": {
        "names": "dlpack flatten_util image nn numpy ops",
        "array_methods": (
            "__array_namespace__ __round__ all any argmax argmin argpartition argsort byteswap choose clip compress "
            "cumprod cumsum diagonal dot flatten max mean min nonzero prod ptp ravel repeat round searchsorted sort "
            "squeeze std sum swapaxes take trace var view"
        ),
    },
    "corejax-parallel": {
        "names": (
            "NamedSharding P experimental.custom_partitioning experimental.mesh_utils experimental.multihost_utils "
            "experimental.pjit experimental.shard_map lax.all_gather lax.all_gather_invariant_p lax.all_gather_p "
            "lax.all_to_all lax.all_to_all_p lax.axis_index lax.axis_index_p lax.axis_size lax.pbroadcast lax.pcast "
            "lax.pmax lax.pmax_p lax.pmean lax.pmin lax.pmin_p lax.ppermute lax.ppermute_p lax.pshuffle lax.psum "
            "lax.psum_p lax.psum_scatter lax.pswapaxes lax.pvary_p lax.ragged_all_to_all lax.ragged_all_to_all_p "
            "lax.reduce_scatter_p make_mesh pmap reshard set_mesh shard_map sharding.AbstractDevice "
            "sharding.AbstractMesh sharding.AxisType sharding.Mesh sharding.NamedSharding sharding.PartitionSpec "
            "sharding.auto_axes sharding.either_axes sharding.explicit_axes sharding.get_abstract_mesh "
            "sharding.get_mesh sharding.in_context sharding.reshard sharding.set_mesh sharding.split_axes "
            "sharding.split_rules sharding.use_abstract_mesh sharding.use_mesh smap"
        ),
        "primitives": (
            "all_gather all_gather_invariant all_to_all axis_index custom_partitioning pmax pmin ppermute psum pvary "
            "ragged_all_to_all reduce_scatter shard_map xla_pmap"
        ),
    },
    "corejax-random": {
        "names": (
            "debug_key_reuse default_prng_impl enable_custom_prng experimental.key_reuse lax.RandomAlgorithm "
            "lax.rng_bit_generator lax.rng_bit_generator_p lax.rng_uniform lax.rng_uniform_p legacy_prng_key "
            "nn.initializers.delta_orthogonal nn.initializers.glorot_normal nn.initializers.glorot_uniform "
            "nn.initializers.he_normal nn.initializers.he_uniform nn.initializers.kaiming_normal "
            "nn.initializers.kaiming_uniform nn.initializers.lecun_normal nn.initializers.lecun_uniform "
            "nn.initializers.normal nn.initializers.orthogonal nn.initializers.truncated_normal "
            "nn.initializers.uniform nn.initializers.variance_scaling nn.initializers.xavier_normal "
            "nn.initializers.xavier_uniform random threefry_partitionable"
        ),
        "primitives": (
            "random_between random_bits random_clone random_fold_in random_gamma random_seed random_split "
            "random_unwrap random_wrap rng_bit_generator rng_uniform threefry2x32"
        ),
    },
    "corejax-scipy": {
        "names": (
            "scipy scipy.cluster scipy.cluster.vq scipy.fft scipy.integrate scipy.interpolate scipy.ndimage "
            "scipy.optimize scipy.signal scipy.sparse scipy.sparse.linalg scipy.spatial scipy.spatial.transform "
            "scipy.special scipy.stats"
        ),
        "primitives": (
            "bessel_jn beta betaln binomial boxcox boxcox1p complex_gamma complex_loggamma cosine_integral dawsn entr "
            "erfcx exp1 expi expn fresnel_c fresnel_s gamma gammasgn hyp1f1 hyp2f1 kl_div log_ndtr logit ndtr ndtri "
            "owens_t poch rel_entr sine_integral spence wofz xlog1py xlogy"
        ),
        "commands": "accuracy",
    },
    "corejax-testing": {
        "names": "test_util",
        "commands": "fuzz new-plugin verify write-manifest",
    },
    "corejax-xla-backend": {
        "names": (
            "Device Shard block_until_ready compilation_cache copy_to_host_async debug default_backend default_device "
            "device_count device_get device_put devices distributed effects_barrier "
            "experimental.compilation_cache.compilation_cache experimental.io_callback experimental.topologies "
            "explain_cache_misses export ffi fwd_and_bwd io_callback jit lax.platform_dependent lax.platform_index_p "
            "lax.sharding_constraint_p lax.with_sharding_constraint live_arrays local_device_count local_devices "
            "log_compiles make_array_from_callback make_array_from_process_local_data "
            "make_array_from_single_device_arrays memory print_environment_info process_count process_index "
            "process_indices profiler pure_callback sharding sharding.factors_of stages transfer_guard "
            "transfer_guard_device_to_device transfer_guard_device_to_host transfer_guard_host_to_device "
            "xla_computation"
        ),
        "primitives": (
            "call_exported call_exported_tangent debug_callback dim_as_value effectful_call_exported "
            "effectful_ffi_call ffi_call inspect_sharding io_callback ordered_debug_callback ordered_io_callback "
            "platform_index pure_callback sharding_constraint xla_call"
        ),
        "commands": "hlo",
        "array_methods": (
            "addressable_data addressable_shards committed global_shards is_fully_addressable is_fully_replicated "
            "platform sharding unsafe_buffer_pointer"
        ),
        "backends": "xla",
    },
}
