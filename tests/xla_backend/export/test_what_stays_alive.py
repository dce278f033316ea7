"""An exported function that was called goes with its last name, and so do its constants."""

import gc
import weakref

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import export


def _exported(c):
    return export.export(corejax.jit(lambda x: x * c * x))(jnp.zeros(c.shape))


CALLS = {
    "eager": lambda e, c: (e.call(c), e.call(c)),
    "compiled": lambda e, c: corejax.jit(e.call)(c),
    "mapped": lambda e, c: corejax.vmap(e.call)(jnp.stack([c, c])),
    "differentiated": lambda e, c: corejax.grad(lambda x: jnp.sum(e.call(x)))(c),
    "read again": lambda e, c: export.deserialize(e.serialize()).call(c),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_called_function_goes(name):
    c = jnp.asarray(np.arange(3.0, dtype=np.float32))
    exported = _exported(c)
    CALLS[name](exported, c)
    again = export.deserialize(exported.serialize(vjp_order=1))
    CALLS[name](again, c)
    alive = [weakref.ref(x) for x in (c, exported, again)]
    del c, exported, again
    gc.collect()
    assert [x() for x in alive] == [None, None, None]


def test_programs_of_one_that_stays_are_dropped_with_the_caches():
    c = jnp.asarray(np.arange(3.0, dtype=np.float32))
    exported = _exported(c)
    exported.call(c)
    assert exported.kept
    corejax.clear_caches()
    assert not exported.kept
    np.testing.assert_array_equal(exported.call(c), c**3)
