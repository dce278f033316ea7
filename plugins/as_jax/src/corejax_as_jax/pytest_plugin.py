"""`pytest -p corejax_as_jax.pytest_plugin`: tests and the libraries that they import get corejax as jax."""

from corejax_as_jax import install

install()
