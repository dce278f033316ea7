"""The bytes of artifacts: what is no whole artifact of a known version is refused, with a sentence that says why."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import export
from corejax_xla_backend.export import artifact

X = np.arange(3, dtype=np.float32)
EXPORTED = export.export(corejax.jit(lambda x: jnp.sin(x) * 2))(X)
# As `jax.export` writes it: a FlatBuffers table around a module.
OF_JAX = b"\x1c\0\0\0\0\0\0\0" + EXPORTED.mlir_module_serialized
BLOB = EXPORTED.serialize(vjp_order=1)


def edited(change: Callable[[dict[str, Any]], Any]) -> bytes:
    """An artifact with another header and a checksum that fits."""
    length = struct.unpack_from("<I", BLOB, 12)[0]
    header = json.loads(BLOB[16 : 16 + length])
    change(header)
    text = json.dumps(header).encode()
    data = BLOB[:12] + struct.pack("<I", len(text)) + text + BLOB[16 + length : -32]
    return data + hashlib.sha256(data).digest()


def test_edited_helper_makes_artifacts() -> None:
    """Otherwise the refusals below would prove nothing."""
    whole = export.deserialize(edited(lambda header: header.update(later={"what": "nobody knows yet"})))
    np.testing.assert_array_equal(whole.call(X), EXPORTED.call(X))


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_bytes_will_do(kind: Any) -> None:
    np.testing.assert_array_equal(export.deserialize(kind(BLOB)).call(X), EXPORTED.call(X))


def test_every_truncation_is_refused() -> None:
    for length in range(len(BLOB)):
        with pytest.raises(ValueError, match=r"artifact"):
            export.deserialize(BLOB[:length])


def test_every_changed_byte_is_refused() -> None:
    for i in range(len(BLOB)):
        with pytest.raises(ValueError, match=r"artifact"):
            export.deserialize(BLOB[:i] + bytes([BLOB[i] ^ 0x41]) + BLOB[i + 1 :])


@pytest.mark.parametrize(
    ("blob", "said"),
    [
        (b"", "not an artifact of corejax.export: empty"),
        (b"\x89CJX", "not an artifact of corejax.export: 4 bytes"),
        (BLOB[:40], "truncated: 40 bytes"),
        (BLOB[:-1], "damaged or truncated: its checksum"),
        (BLOB + b"\n", "damaged or truncated"),
        (BLOB.replace(b"\r\n", b"\n", 1), "converted in text mode"),
        (BLOB[:8] + struct.pack("<I", 2) + BLOB[12:], "has format 2, .* reads formats up to 1.*Upgrade"),
        (EXPORTED.mlir_module_serialized, "a bare StableHLO module"),
        (EXPORTED.mlir_module().encode(), "begins with b'module @jit"),
        (b"PK\x03\x04 and so on", "begins with b'PK"),
        (OF_JAX, r"apparently an artifact of jax\.export; export"),
    ],
)
def test_what_is_no_artifact_is_named(blob: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        export.deserialize(blob)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda h: h["functions"][1].update(calling_convention_version=9), r"calling convention 9; .* knows 1 to 2"),
        (lambda h: h["producer"].update(stablehlo="99.1.0"), r"written in StableHLO 99\.1\.0 .* reads \d.*upgrade"),
        (lambda h: h.update(functions=[]), "no functions"),
        (lambda h: h.pop("blocks"), "header cannot be read.*blocks"),
        (lambda h: h["functions"][0].update(in_avals=[["float17", [3], False]]), "header cannot be read.*float17"),
        (lambda h: h["functions"][0].update(in_tree=["set", "*"]), "unknown kind of node 'set'"),
        (lambda h: h["functions"][0].update(modules={"cpu": 99}), "header cannot be read"),
        (lambda h: h["functions"][0].update(in_tree=["node", "acme.Unknown", "", "*"]), "not registered in this"),
    ],
)
def test_headers_that_are_not_understood(change: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        export.deserialize(edited(change))


@pytest.mark.parametrize("what", ["text", None, 3, np.zeros(3)])
def test_what_is_not_bytes(what: Any) -> None:
    with pytest.raises(TypeError, match="takes the bytes of an artifact"):
        export.deserialize(what)


def test_equal_modules_are_stored_once() -> None:
    both = export.export(corejax.jit(jnp.sin), platforms=["cpu", "cuda"])(X).serialize()
    one = export.export(corejax.jit(jnp.sin), platforms=["cpu"])(X).serialize()
    assert len(both) < len(one) + 50
    assert artifact.decode(both)[0][0]["modules"].keys() == {"cpu", "cuda"}
