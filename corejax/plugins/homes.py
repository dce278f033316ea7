"""Which distribution has what, for messages where it is not installed; the kernel needs none of them."""

from __future__ import annotations

_NAMES = {
    "corejax-lax-basic": "lax",
    "corejax-numpy": "numpy nn",
    "corejax-control-flow": (
        "lax.cond lax.switch lax.scan lax.while_loop lax.fori_loop lax.map lax.ProgressBar lax.optimization_barrier "
        "lax.custom_linear_solve lax.custom_root lax.associative_scan checkpoint checkpoint_name checkpoint_policies "
        "ad_checkpoint remat named_call named_scope closure_convert custom_gradient custom_jvp custom_vjp custom_vmap "
        "custom_batching custom_derivatives"
    ),
    "corejax-xla-backend": (
        "jit devices local_devices device_count device_put device_get default_backend block_until_ready ffi"
    ),
    "corejax-testing": "",
}

# Names of the facade and its namespaces whose plugin may not be installed: name -> distribution that has it.
KNOWN_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

# Commands of `corejax`, likewise.
KNOWN_COMMANDS = {"verify": "corejax-testing", "fuzz": "corejax-testing"}

# The distributions themselves.
HOMES = frozenset(_NAMES)
