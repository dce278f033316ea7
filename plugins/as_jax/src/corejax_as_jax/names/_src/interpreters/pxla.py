"""`jax._src.interpreters.pxla`."""

from typing import Any as _Any

global_result_handlers: dict[_Any, _Any] = {}
