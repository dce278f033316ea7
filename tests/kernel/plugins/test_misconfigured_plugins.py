"""Plugins that are installed wrongly, or offer what nothing can reach: each is recorded, and the others work."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from importlib_metadata import distributions

import corejax
from corejax.plugins import _discovery
from corejax.plugins._plugin_manager import PluginManager
from tests.kernel.plugin_sites import KERNEL, Site

GOOD = "@hookimpl\ndef corejax_export_names(): return {'acme_good': 'good_plugin:extend'}"
NAMES = "@hookimpl\ndef corejax_export_names(): return {names}"


def run(path: list[os.PathLike[str]], program: str, *flags: str, **environment: str) -> str:
    """What a program prints in a process that sees these directories, and the distributions of the environment."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("COREJAX")}
    found = os.pathsep.join(map(os.fspath, path))
    done = subprocess.run(
        [sys.executable, *flags, "-c", textwrap.dedent(program)],
        env={**clean, "PYTHONPATH": found, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


LISTED = """
import contextlib, io
from corejax.cli import main
out = io.StringIO()
with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
    main(["plugins", "--json", "--load"])
print(out.getvalue())
"""


def entries(*path: os.PathLike[str]) -> list[dict[str, Any]]:
    """What `corejax plugins --json` says."""
    return json.loads(run([*path, KERNEL], LISTED))["plugins"]  # type: ignore[no-any-return]


def listed(*path: os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """The same by name."""
    return {entry["name"]: entry for entry in entries(*path)}


# -- names that nothing can reach -----------------------------------------------------------------------------------

HIDDEN = {
    "numpy.sin": "corejax.numpy.sin is in the namespace of plugin 'numpy_api' (corejax-numpy ",
    "lax.add": "corejax.lax.add is in the namespace of plugin 'lax_basic' (corejax-lax-basic ",
    "nn.relu": "corejax.nn.relu is in the namespace of plugin 'numpy_api' (corejax-numpy ",
    "numpy.linalg.det": "corejax.numpy.linalg.det is in the namespace of plugin 'linalg' (corejax-linalg ",
    "nn.initializers.zeros": "corejax.nn.initializers.zeros is in the namespace of plugin 'numpy_api' (corejax-numpy ",
    "lax.cube.x": "corejax.lax.cube.x cannot be reached: corejax.lax.cube is not a module",
    "lax.add.x": "corejax.lax.add.x cannot be reached: corejax.lax.add is not a module",
    "acme_name.x": "corejax.acme_name.x cannot be reached: corejax.acme_name is not a module",
}


def test_names_that_nothing_can_reach(site: Site) -> None:
    """Each in a plugin of its own, through an installed distribution; those that can be reached are."""
    reached = ("lax.acme", "nn.initializers.acme", "acme.b.c")
    site.add("good", NAMES.format(names=dict.fromkeys(reached, "good_plugin:extend")))
    for i, name in enumerate(HIDDEN):
        names = {name: f"acme{i}_plugin:extend"} | (
            {"acme_name": f"acme{i}_plugin:extend"} if "acme_name" in name else {}
        )
        site.add(f"acme{i}", NAMES.format(names=names), version=f"7.{i}")
    found = listed(site.path)
    for i, (name, message) in enumerate(HIDDEN.items()):
        entry = found[f"acme{i}"]
        assert entry["status"] == "failed" and entry["distribution"] == f"corejax-acme{i}"
        assert message in entry["causes"][0], (name, entry)
        if "namespace" in message:
            assert f"plugin 'acme{i}' (corejax-acme{i} 7.{i})" in entry["causes"][0]
    others = {name: entry["status"] for name, entry in found.items() if not name.startswith("acme")}
    assert set(others.values()) == {"loaded"}
    program = """
        import corejax.lax, corejax.nn.initializers, corejax
        from corejax.acme.b import c
        print(corejax.lax.acme is corejax.nn.initializers.acme is c is corejax.acme.b.c, corejax.numpy.sin(0.0))
    """
    assert run([site.path, KERNEL], program) == "True 0.0\n"


def test_a_later_namespace_and_a_module_without_all(site: Site, fresh: PluginManager) -> None:
    site.add("zoo", "@hookimpl\ndef corejax_export_namespaces(): return {'zoo': 'zoo_plugin'}\ndef lion(): pass")
    site.add("acme", NAMES.format(names={"zoo.lion": "acme_plugin:extend"}))
    site.add("other", NAMES.format(names={"zoo.tiger": "other_plugin:extend"}))
    fresh.load()
    assert {name: r.status for name, r in fresh.records.items()} == {
        "zoo": "loaded",
        "acme": "failed",
        "other": "loaded",
    }
    assert "plugin 'zoo' (corejax-zoo 1.0)" in str(fresh.records["acme"].fault)
    assert "zoo.lion" not in fresh.names


# -- distributions that cannot be read, or of which there are two -----------------------------------------------------

TEXTS = {
    "directory": None,
    "byte-order mark": "\ufeff[corejax.plugins]\nacme = acme_plugin\n".encode(),
    "spaces": b"[ corejax.plugins ]\nacme = acme_plugin\n",
    "open bracket": b"[corejax.plugins\nacme = acme_plugin\n",
    "UTF-16": "[corejax.plugins]\nacme = acme_plugin\n".encode("utf-16"),
    "no value": b"[corejax.plugins]\nacme\n",
    "group misspelt": b"[corejax.plugin]\nacme = acme_plugin\n",
    "not UTF-8": b"[corejax.plugins]\nacme = acme_plugin\n# \xff\n",
}


def test_entry_points_that_cannot_be_read(tmp_path: Path) -> None:
    sites = []
    for i, text in enumerate(TEXTS.values()):
        site = Site(tmp_path / str(i))
        site.path.mkdir()
        site.add("acme", GOOD, distribution=f"acme{i}")
        file = site.path / f"acme{i}-1.0.dist-info" / "entry_points.txt"
        file.unlink()
        file.mkdir() if text is None else file.write_bytes(text)
        sites.append(site.path)
    good = Site(tmp_path / "good")
    good.path.mkdir()
    good.add("good", GOOD)
    found = listed(*sites, good.path)
    for i, kind in enumerate(TEXTS):
        entry = found[f"acme{i}"]
        assert (entry["status"], entry["distribution"]) == ("failed", f"acme{i}"), kind
        assert entry["causes"], kind
        if kind == "group misspelt":
            assert "has a group [corejax.plugin]; plugins are found in [corejax.plugins]" in entry["causes"][0]
    assert found["good"]["status"] == "loaded" and found["numpy_api"]["status"] == "loaded"


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read every file")
def test_entry_points_without_permission(site: Site) -> None:
    site.add("acme", GOOD)
    (site.path / "corejax_acme-1.0.dist-info" / "entry_points.txt").chmod(0)
    assert "Permission denied" in listed(site.path)["corejax-acme"]["causes"][0]


def test_text_that_mentions_the_group_is_no_fault(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.add("acme", GOOD)
    info = site.path / "corejax_acme-1.0.dist-info" / "entry_points.txt"
    info.write_text("[console_scripts]\nx = corejax.plugins:manager\n  [corejax.plugins]  \n")
    monkeypatch.setattr("importlib_metadata.distributions", lambda: distributions(path=[str(site.path)]))
    assert list(_discovery.installed_entry_points()) == []


def test_of_two_distributions_the_first_by_name_counts(tmp_path: Path) -> None:
    """Whatever the order of the path."""
    for distribution in ("beta-acme", "alpha-acme"):
        site = Site(tmp_path / distribution)
        site.path.mkdir()
        site.add("acme", NAMES.format(names={}), distribution=distribution)
    for order in (["beta-acme", "alpha-acme"], ["alpha-acme", "beta-acme"]):
        found = {e["distribution"]: e for e in entries(*(tmp_path / name for name in order))}
        assert found["alpha-acme"]["status"] == "loaded" and found["beta-acme"]["status"] == "failed"
        assert "uninstall one" in found["beta-acme"]["causes"][0]


# -- no metadata, and metadata that comes late ---------------------------------------------------------------------


def test_code_without_metadata(tmp_path: Path) -> None:
    """As a bundler leaves it: packages side by side, nothing of how they were installed."""
    packages = {"corejax": KERNEL / "corejax"}
    for name in ("lax_basic", "numpy_api", "xla_backend"):
        source = KERNEL / "plugins" / name / "src"
        packages |= {p.name: p for p in source.iterdir() if (p / "__init__.py").exists()}
    for name, source in packages.items():
        (tmp_path / name).symlink_to(source, target_is_directory=True)
    for entry in Path(np.__file__).parents[1].iterdir():
        if not entry.name.endswith((".dist-info", ".pth")) and not entry.name.startswith("__"):
            (tmp_path / entry.name).symlink_to(entry)
    program = f"""
        import sys
        sys.path.append({os.fspath(tmp_path)!r})
        import corejax
        from corejax.arrays.array import as_array
        for f in (lambda: corejax.jit, lambda: corejax.numpy, lambda: as_array(1.0) + 1, lambda: corejax.random):
            try:
                f()
            except AttributeError as error:
                print(error)
    """
    said = run([], program, "-S").splitlines()
    for line, home in zip(said, ("corejax-xla-backend", "corejax-numpy", "corejax-lax-basic"), strict=False):
        package = home.replace("-", "_")
        assert f"PyInstaller: --copy-metadata {home} --collect-all {package}" in line and "pip install" not in line
    assert "pip install corejax-random" in said[3] and len(said) == 4


def test_installed_after_plugins_were_loaded(site: Site, fresh: PluginManager) -> None:
    fresh.load()
    site.add("late", "@hookimpl\ndef corejax_export_namespaces(): return {'late': 'late_plugin'}", version="2.0")
    told = r"plugin 'late' \(corejax-late 2.0\) was installed after plugins were loaded: restart Python"
    with pytest.raises(AttributeError, match=told):
        corejax.late  # noqa: B018
    with pytest.raises(ImportError, match=told):
        importlib.import_module("corejax.late")
    with pytest.raises(Exception, match=told):
        corejax.extend.jvp_rules.lookup(corejax.extend.Primitive("acme.q", impl=lambda x: x, abstract_eval=lambda x: x))
    site.add("first", "@hookimpl\ndef corejax_export_namespaces(): return {}", distribution="corejax-fft")
    with pytest.raises(
        AttributeError, match="corejax-fft, which was installed after plugins were loaded: restart Python"
    ):
        getattr(corejax, "numpy.fft")
