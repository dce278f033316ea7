# The names of `jax.core`.
from corejax.base.dims import max_dim as max_dim
from corejax.base.dims import min_dim as min_dim
from corejax.core.avals import ShapedArray as ShapedArray
from corejax.core.trace import Tracer as Tracer
