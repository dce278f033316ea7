"""Errors in a process without corejax under the name jax, and of a library that asks for other names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import corejax_as_jax
from corejax_as_jax import refusals


def module(**fields: str) -> ModuleType:
    made = ModuleType("jax")
    vars(made).update(fields)
    return made


def test_jax_that_is_imported_already() -> None:
    pytest.importorskip("jax")
    assert not corejax_as_jax.installed()
    with pytest.raises(ImportError, match=r"jax .* is imported already, from .*: a process has one jax"):
        corejax_as_jax.install()


def test_two_copies(tmp_path: Path) -> None:
    other = module(__file__=str(tmp_path / "corejax_as_jax" / "path" / "jax" / "__init__.py"))
    with pytest.raises(ImportError, match=r"two copies of corejax-as-jax: .* is on PYTHONPATH"):
        refusals.check_process(other)


def test_a_jax_of_another_version_than_the_installed_one() -> None:
    pytest.importorskip("jax")
    with pytest.raises(ImportError, match=r"jax 0.4.1 is imported already, from a/b.py, and the installed .* is jax 0"):
        refusals.check_process(module(__file__="a/b.py", __version__="0.4.1"))


def test_a_frozen_program_without_the_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(refusals, "NAMES", tmp_path / "names")
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(ImportError, match=r"this program is frozen, and the modules of jax are files in .*`names`"):
        refusals.check_process(None)


LIBRARY = {
    "private": "from jax._src.nowhere import thing",
    "public": "from jax import no_such_name",
    "alias": "from jax.numpy import no_such_name",
    "inner": "import jax.numpy as jnp; jnp.linalg.no_such_name",
    "newer": "import jax; jax.no_such_name",
}


def test_a_library_that_asks_for_other_names_when_it_is_imported(tmp_path: Path) -> None:
    for name, line in LIBRARY.items():
        (tmp_path / f"needs_{name}.py").write_text(line)
    metadata = tmp_path / "needs_newer-2.0.dist-info"
    metadata.mkdir()
    requires = "Requires-Dist: jaxlib>=9\nRequires-Dist: jax[cpu] (>=0.12.1,!=0.13) ; python_version > '3'\n"
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: needs-newer\nVersion: 2.0\n{requires}")
    (metadata / "top_level.txt").write_text("needs_newer\n")
    program = "import corejax_as_jax, sys; sys.path.insert(0, sys.argv[1]); corejax_as_jax.install()\n"
    for name in LIBRARY:
        program += (
            f"try:\n    import needs_{name}\nexcept Exception as error:\n    print(type(error).__name__, error)\n"
        )
    result = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False)
    private, public, alias, inner, newer = result.stdout.splitlines()
    assert private.startswith("ModuleNotFoundError no module named 'jax._src.nowhere', which needs_private asks for:")
    assert public.startswith("ImportError module 'jax' has no attribute 'no_such_name', which needs_public asks for:")
    assert public.endswith(
        "`corejax as-jax --scan needs_public` lists all such names of needs_public; please report them"
    )
    assert alias.startswith(
        "ImportError module 'jax.numpy' has no attribute 'no_such_name', which needs_alias asks for:"
    )
    missing = "AttributeError module 'jax.numpy.linalg' has no attribute 'no_such_name', which needs_inner asks for:"
    assert inner.startswith(missing)
    assert newer.startswith("AttributeError module 'jax' has no attribute 'no_such_name', which needs_newer asks for:")
    assert newer.endswith(
        "and needs-newer 2.0 requires jax>=0.12.1,!=0.13. Install a release of needs_newer for JAX 0.10.2"
    )
