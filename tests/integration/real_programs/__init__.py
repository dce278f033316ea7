"""Programs as people write them for jax, with nothing changed but the library's name."""

from tests.integration.real_programs import inference, learning, numerics
from tests.integration.real_programs.registry import PROGRAMS

__all__ = ["PROGRAMS", "inference", "learning", "numerics"]
