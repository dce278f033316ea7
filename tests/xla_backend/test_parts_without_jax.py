"""Taking arrays apart that are over several devices does not import jax, where that is installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("jaxlib")

CODE = """
import sys
import numpy as np
import corejax
import corejax.numpy as jnp
from corejax.sharding import NamedSharding, PartitionSpec as P

corejax.config.update("num_cpu_devices", 4)
mesh = corejax.make_mesh((2, 2), ("a", "b"))
value = np.arange(16).reshape(4, 4)
for dtype in ("bfloat16", "float8_e4m3fn", "float16", "bool", "complex64", "int32", "uint8"):
    wanted = value.astype(dtype)
    for spec in (P("a"), P("a", "b"), P(None, "b"), P()):
        x = corejax.device_put(wanted, NamedSharding(mesh, spec))
        np.testing.assert_array_equal(np.asarray(x).astype(complex), wanted.astype(complex))
        shards = x.addressable_shards
        assert [s.device for s in shards] == list(corejax.devices()[:4]), shards
        for shard in shards:
            assert shard.data.devices() == {shard.device}
            assert shard.data.dtype == wanted.dtype
            np.testing.assert_array_equal(np.asarray(shard.data).astype(complex), wanted[shard.index].astype(complex))
        assert x.addressable_data(3).shape == shards[3].data.shape
        y = corejax.device_put(x, NamedSharding(mesh, P("b", "a")))
        np.testing.assert_array_equal(np.asarray(y).astype(complex), wanted.astype(complex))
        x.delete()
assert "jax" not in sys.modules
print("done")
"""


def test_values_and_parts_of_spread_arrays() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "done\n", done.stderr
