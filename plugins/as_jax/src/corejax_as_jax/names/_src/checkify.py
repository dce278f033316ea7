"""`jax._src.checkify`."""

from corejax.experimental.checkify import *  # noqa: F403
from corejax.experimental.checkify import Error, JaxRuntimeError as JaxException, checkify, user_checks

Out = object
