"""`jax.interpreters.pxla`."""

from typing import Any as _Any

global_result_handlers: dict[_Any, _Any] = {}
global_avals_to_results_handler = None
