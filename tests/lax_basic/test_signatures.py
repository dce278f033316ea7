"""`corejax.lax` beside `jax.lax`: names, signatures, what `dir` and completion show."""

from __future__ import annotations

import subprocess
import sys

import pytest

from corejax import lax
from corejax.extend import primitives
from tests.signatures import difference, public

# What is not here, for reasons that docs/differences.md gives.
ABSENT = {"device_put_p", "precv", "psend"}

# Arguments that only jax has, or only corejax: how a scan is transposed, a progress bar.
IGNORED = frozenset({"progress", "_split_transpose"})
# Signatures that differ on purpose: more may be left out, or an argument may go by its name too.
MORE = {"argmax", "argmin", "squeeze", "optimization_barrier"}


def test_every_name_is_there() -> None:
    theirs = pytest.importorskip("jax").lax
    absent = {name for name in public(theirs) if not hasattr(lax, name)}
    assert absent == ABSENT


def test_signatures_are_jaxs() -> None:
    theirs = pytest.importorskip("jax").lax
    both = [name for name in public(theirs) if hasattr(lax, name) and name not in MORE]
    found = {name: difference(getattr(lax, name), getattr(theirs, name), IGNORED) for name in both}
    assert not {name: text for name, text in found.items() if text}


def test_dir_shows_what_there_is_and_nothing_else() -> None:
    names = [n for n in dir(lax) if not n.startswith("_")]
    theirs = dir(pytest.importorskip("jax").lax)
    assert {n for n in names if n not in theirs and not n.endswith("_p")} == {
        *("log2", "one_minus_square", "polynomial"),  # in newer versions of JAX
        *("ProgressBar", "pack", "unpack"),
    }
    assert {
        "scan",
        "cond",
        "while_loop",
        "scan_p",
        "cond_p",
        "while_p",
        "optimization_barrier",
        "sin",
        "sort_p",
    } <= set(names)
    for name in names:
        getattr(lax, name)
        if name.endswith("_p"):
            assert getattr(lax, name) in primitives.values()


def test_dir_loads_nothing() -> None:
    """Completion in a fresh process names what plugins contribute, though none of it is imported."""
    code = (
        "import sys; from corejax import lax; names = dir(lax); "
        "assert 'scan' in names and 'fori_loop' in names, names; "
        "assert 'corejax_control_flow.loops.scan' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_primitives_belong_to_a_plugin() -> None:
    found = [getattr(lax, name) for name in dir(lax) if name.endswith("_p")]
    assert not [p for p in found if not p.provenance.module.startswith("corejax_")]
