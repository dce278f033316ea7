"""Which distribution has what, for messages where it is not installed; the kernel needs none of them."""

from __future__ import annotations

_NAMES = {
    "corejax-lax-basic": "lax default_matmul_precision",
    "corejax-numpy": "numpy nn",
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
        "abs add and argmax argmin broadcast_in_dim ceil clamp complex concatenate conj convert_element_type cos "
        "cumlogsumexp cummax cummin cumprod cumsum div dot_general dynamic_slice dynamic_update_slice eq exp expm1 "
        "floor ge gt imag integer_pow iota is_finite le log log1p logistic lt max min mul ne neg not or pad pow real "
        "reduce_and reduce_max reduce_min reduce_or reduce_prod reduce_sum rem reshape rev rsqrt select_n sign sin "
        "slice sqrt squeeze stop_gradient sub tan tanh transpose xor"
    ),
    "corejax-control-flow": (
        "composite cond custom_jvp_call custom_lin custom_linear_solve custom_vjp_call custom_vmap_call linear_call "
        "name optimization_barrier progress progress_report remat2 remat_opt scan while"
    ),
    "corejax-xla-backend": ("effectful_ffi_call ffi_call xla_call"),
}

# Primitives, likewise: name -> distribution.
KNOWN_PRIMITIVES = {name: home for home, names in _PRIMITIVES.items() for name in names.split()}

# Commands of `corejax`, likewise.
KNOWN_COMMANDS = dict.fromkeys(("fuzz", "new-plugin", "verify", "write-manifest"), "corejax-testing")

# The distributions themselves.
HOMES = frozenset(_NAMES)
