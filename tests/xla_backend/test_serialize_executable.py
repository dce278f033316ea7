"""`corejax.experimental.serialize_executable`: compiled programs as bytes."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax.experimental.serialize_executable import LoadedProgram, deserialize_and_load, serialize


def f(x: Any, *, y: Any) -> Any:
    return {"sum": (x @ y).sum(), "weak": 2.0}


def test_a_loaded_program_computes_the_same() -> None:
    x, y = jnp.arange(6.0).reshape(2, 3), jnp.ones((3, 2), "bfloat16")
    compiled = corejax.jit(f).lower(x, y=y).compile()
    loaded = deserialize_and_load(*serialize(compiled))
    assert isinstance(loaded, LoadedProgram) and repr(loaded) == "<loaded program f>"
    ours, wanted = loaded(x, y=y), compiled(x, y=y)
    assert ours["sum"] == wanted["sum"] and ours["weak"].weak_type
    assert loaded.in_avals[0][0].shape == (2, 3) and loaded.out_avals["sum"].dtype == jnp.float32
    assert "HloModule" in loaded.as_text() and loaded.cost_analysis()["flops"] > 0
    again = deserialize_and_load(*serialize(compiled), execution_devices=corejax.devices()[:1])
    assert again(x, y=y)["sum"] == wanted["sum"]


def test_in_another_process(tmp_path: Path) -> None:
    constant = jnp.arange(3000.0)
    compiled = corejax.jit(lambda x: x[:3] + constant[-3:]).lower(jnp.zeros(5)).compile()
    (tmp_path / "program").write_bytes(pickle.dumps(serialize(compiled)))
    text = (
        "import pickle, corejax, corejax.numpy as jnp\n"
        "from corejax.experimental.serialize_executable import deserialize_and_load\n"
        "print(*deserialize_and_load(*pickle.load(open('program', 'rb')))(jnp.ones(5)).tolist())\n"
    )
    out = subprocess.run([sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["2998.0", "2999.0", "3000.0"]


def test_a_program_of_the_cache_on_disk(tmp_path: Path) -> None:
    """XLA on CPUs writes no machine code of a program that it has read."""
    settings = {"compilation_cache_dir": str(tmp_path / "programs"), "persistent_cache_min_compile_time_secs": 0.0}
    x = jnp.arange(6.0).reshape(2, 3)
    with corejax.config.override(**settings, kept_programs=0):
        for _ in range(3):
            compiled = corejax.jit(lambda x: (jnp.sin(x) * 0.4 + x, (x * 0.3).sum(0))).lower(x).compile()
            loaded = deserialize_and_load(*serialize(compiled))
            np.testing.assert_array_equal(loaded(x)[1], compiled(x)[1])
    assert list((tmp_path / "programs").iterdir())


def test_donated_arguments() -> None:
    compiled = corejax.jit(lambda x: x + 1, donate_argnums=0).lower(jnp.ones(3)).compile()
    loaded, x = deserialize_and_load(*serialize(compiled)), corejax.device_put(jnp.ones(3))
    np.testing.assert_array_equal(loaded(x), [2, 2, 2])
    assert x.is_deleted()


def test_what_is_refused() -> None:
    compiled = corejax.jit(lambda x: x).lower(jnp.ones(3)).compile()
    data, in_tree, out_tree = serialize(compiled)
    loaded = deserialize_and_load(data, in_tree, out_tree)
    ref = corejax.new_ref(0.0)
    printing = corejax.jit(lambda x: corejax.debug.callback(print, x) or x).lower(1.0).compile()
    calls: list[tuple[type[Exception], str, Any]] = [
        (TypeError, "serialize takes a compiled program", lambda: serialize(f)),  # type: ignore[arg-type]
        (ValueError, "calls Python functions", lambda: serialize(printing)),
        (ValueError, "uses references", lambda: serialize(corejax.jit(lambda: ref[...]).lower().compile())),
        (
            ValueError,
            "extended dtypes",
            lambda: serialize(corejax.jit(corejax.random.split).lower(corejax.random.key(0)).compile()),
        ),
        (ValueError, "are not bytes that", lambda: deserialize_and_load(b"no program", in_tree, out_tree)),
        (ValueError, "on one device, got 2", lambda: deserialize_and_load(data, in_tree, out_tree, None, [0, 1])),
        (TypeError, r"for float32\[3\] as argument number 0", lambda: loaded(jnp.ones(4))),
        (TypeError, "for arguments of structure", lambda: loaded(jnp.ones(3), 1)),
        (TypeError, "as argument number 0", lambda: corejax.vmap(loaded)(jnp.ones((2, 3)))),
    ]
    for error, text, call in calls:
        with pytest.raises(error, match=text):
            call()
