"""`jax.interpreters.pxla`."""

global_result_handlers: dict = {}
global_avals_to_results_handler = None
