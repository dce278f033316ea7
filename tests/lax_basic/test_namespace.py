"""`corejax.lax` is a table of names, which has to have what modules and rows of tables define."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from corejax import lax
from corejax.extend import Primitive
from corejax_lax_basic import arrays
from corejax_lax_basic import lax as table
from corejax_lax_basic._base.rows import ROWS


def test_the_table_has_what_modules_define() -> None:
    defined = {}
    for module in table._MODULES:
        found = importlib.import_module(f"corejax_lax_basic.{module}")
        defined |= dict.fromkeys(found.__all__, module)
    for name, row in ROWS.items():
        module = row.provenance.module if isinstance(row, Primitive) else row.__module__
        if module.startswith("corejax_lax_basic."):  # tests make rows, too
            defined.setdefault(name, module.removeprefix("corejax_lax_basic."))
    assert defined == {name: module for module, names in table._MODULES.items() for name in names.split()}


def test_star_import_gives_what_dir_shows() -> None:
    names: dict[str, object] = {}
    exec("from corejax.lax import *", names)
    assert {"sin", "sin_p", "sort", "GatherDimensionNumbers"} <= names.keys() <= {*dir(lax), "__builtins__"}


def test_a_name_imports_its_module_only() -> None:
    code = (
        "import sys; import corejax.numpy as jnp; from corejax import lax; lax.sin(jnp.ones(3)) + 1;"
        "print([m for m in sys.modules if m.startswith(('corejax_lax_basic.windows', 'corejax_lax_basic.special'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, timeout=60, capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_a_sum_is_found_by_the_transpose_of_broadcasting() -> None:
    code = (
        "import corejax, corejax.lax as lax, numpy as np; "
        "f = corejax.linear_transpose(lambda x: lax.broadcast_in_dim(x, (3,), ()), np.float32(0)); "
        "print(f(np.ones(3, np.float32)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, timeout=60, capture_output=True, text=True)
    assert "3" in done.stdout


def test_what_is_used_after_the_first_compilation_is_compiled_too() -> None:
    pytest.importorskip("jaxlib")
    code = (
        "import corejax, corejax.lax as lax, numpy as np; x = np.ones(3, np.float32);"
        "corejax.jit(lambda x: lax.neg(x))(x); print(corejax.jit(lambda x: lax.sin(lax.erf_inv(x)))(x * 0))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, timeout=60, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[0. 0. 0.]\n", "")


def test_array_methods_are_where_the_table_says() -> None:
    for place, names in arrays.PLACES.items():
        module, _, attribute = place.partition(":")
        found = getattr(importlib.import_module(f"corejax_lax_basic.arrays.{module}"), attribute)
        assert found.keys() == set(names)
