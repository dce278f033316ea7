"""`jax._src.interpreters.pxla`."""

global_result_handlers: dict = {}
