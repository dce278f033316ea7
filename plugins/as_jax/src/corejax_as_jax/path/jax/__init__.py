"""The package `jax` of a process that has this directory on its path: corejax takes its place."""

import corejax_as_jax

corejax_as_jax.install()
