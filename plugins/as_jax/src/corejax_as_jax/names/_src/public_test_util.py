"""`jax._src.public_test_util`."""

from corejax.test_util import check_grads, check_jvp, check_vjp
