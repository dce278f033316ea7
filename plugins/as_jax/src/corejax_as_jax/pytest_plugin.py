"""`pytest -p corejax_as_jax.pytest_plugin`: tests, and what they import, get corejax for jax."""

from corejax_as_jax import install

install()
