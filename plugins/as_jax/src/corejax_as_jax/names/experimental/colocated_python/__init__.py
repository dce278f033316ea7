"""`jax.experimental.colocated_python`."""

from typing import Any as _Any

from corejax_as_jax.absent import absent_function as _absent_function

colocated_python = _absent_function("colocated_python")
colocated_cpu_devices = _absent_function("colocated_cpu_devices")


def colocated_python_class(cls: _Any) -> _Any:
    """Return the class."""
    return cls
