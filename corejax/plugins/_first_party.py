"""Which distribution has what, for messages where it is not installed; the kernel needs none of them."""

from __future__ import annotations

_NAMES = {
    "corejax-lax-basic": "lax default_matmul_precision",
    "corejax-numpy": "numpy nn image ops dlpack flatten_util",
    "corejax-control-flow": (
        "lax.composite lax.cond lax.cond_p lax.switch lax.scan lax.scan_p lax.while_loop lax.while_p lax.fori_loop "
        "lax.map lax.ProgressBar lax.optimization_barrier lax.optimization_barrier_p lax.linear_solve_p "
        "lax.custom_linear_solve lax.custom_root lax.associative_scan checkpoint checkpoint_name checkpoint_policies "
        "ad_checkpoint remat named_call named_scope closure_convert custom_gradient custom_jvp custom_vjp custom_vmap "
        "custom_batching custom_derivatives"
    ),
    "corejax-xla-backend": (
        "jit devices local_devices device_count device_put device_get default_backend block_until_ready ffi"
    ),
    "corejax-testing": "",
    "corejax-explain": "explain",
}

# Names of the facade and its namespaces whose plugin may not be installed: name -> distribution that has it.
KNOWN_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

_PRIMITIVES = {
    "corejax-lax-basic": (
        "abs acos acosh add after_all and approx_top_k argmax argmin asin asinh atan atan2 atanh bessel_i0e "
        "bessel_i1e bitcast_convert_type broadcast_in_dim cbrt ceil clamp clz complex concatenate conj "
        "conv_general_dilated convert_element_type cos cosh create_token cumlogsumexp cummax cummin cumprod "
        "cumsum digamma div dot_general dynamic_slice dynamic_update_slice empty eq eq_to erf erf_inv erfc exp "
        "exp2 expm1 floor gather ge gt igamma igamma_grad_a igammac imag integer_pow iota is_finite le le_to "
        "lgamma log log1p logistic lt lt_to max min mul mulhi ne neg nextafter not or pad polygamma "
        "population_count pow ragged_dot_general random_gamma_grad real reduce reduce_and reduce_max reduce_min "
        "reduce_or reduce_precision reduce_prod reduce_sum reduce_window reduce_window_max reduce_window_min "
        "reduce_window_sum reduce_xor regularized_incomplete_beta "
        "rem reshape rev round rsqrt scaled_dot scatter scatter-add scatter-max scatter-min scatter-mul "
        "scatter-sub scatter_apply select_and_gather_add select_and_scatter select_and_scatter_add select_n shift_left "
        "shift_right_arithmetic shift_right_logical sign sin sinh slice sort split sqrt square squeeze stack "
        "stop_gradient sub tan tanh tile top_k transpose unstack xor zeta"
    ),
    "corejax-control-flow": (
        "composite cond custom_jvp_call custom_lin custom_linear_solve custom_vjp_call custom_vmap_call "
        "linear_call name optimization_barrier progress progress_report remat2 remat_opt scan while"
    ),
    "corejax-xla-backend": ("effectful_ffi_call ffi_call xla_call"),
}

# Primitives, likewise: name -> distribution.
KNOWN_PRIMITIVES = {name: home for home, names in _PRIMITIVES.items() for name in names.split()}

# Commands of `corejax`, likewise.
KNOWN_COMMANDS = dict.fromkeys(("fuzz", "new-plugin", "verify", "write-manifest"), "corejax-testing")

# The distributions themselves.
HOMES = frozenset(_NAMES)
