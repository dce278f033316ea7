"""`jax._src.xla_bridge`."""

from typing import Any as _Any

from corejax_as_jax.backends import backends, get_backend

_backends: dict[_Any, _Any] = {}
