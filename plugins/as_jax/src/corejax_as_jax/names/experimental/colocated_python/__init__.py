"""`jax.experimental.colocated_python`."""

from corejax_as_jax.absent import absent_function as _absent_function

colocated_python = _absent_function("colocated_python")
colocated_cpu_devices = _absent_function("colocated_cpu_devices")


def colocated_python_class(cls):
    """Return the class."""
    return cls
