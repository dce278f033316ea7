"""Compiled programs on disk: found again, held apart, mended when damaged, bounded; trouble is a warning only."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click.testing
import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import compilation_cache, lax
from corejax.extend import Primitive, ShapedArray
from corejax_xla_backend import _jaxlib
from corejax_xla_backend._cache_command import cache as cache_command
from corejax_xla_backend._xla import disk_cache
from corejax_xla_backend._xla.program_files import MAGIC, SUFFIX, ProgramFiles

X = np.arange(6, dtype=np.float32)


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Path]:
    """An empty cache for all programs, however fast they compile."""
    settings = {"compilation_cache_dir": str(tmp_path / "programs"), "persistent_cache_min_compile_time_secs": 0.0}
    with corejax.config.override(**settings):
        compilation_cache.reset_cache()
        yield tmp_path / "programs"
    compilation_cache.reset_cache()


def loss(x: Any) -> Any:
    """Something with a loop and a derivative."""
    return lax.scan(lambda c, y: (jnp.sin(c) + y, c * y), x[0], x)[1].sum()


def run(fun: Any, *args: Any) -> Any:
    """As in a process that has not compiled anything yet."""
    corejax.clear_caches()
    return corejax.jit(fun)(*args)


def files_in(directory: Path) -> list[Path]:
    return sorted(directory.iterdir()) if directory.exists() else []


# -- found again ---------------------------------------------------------------------------------------------------


def test_a_program_is_found_again_and_computes_the_same(cache: Path) -> None:
    step = corejax.value_and_grad(loss)
    first = run(corejax.vmap(step), np.stack([X, 2 * X]))
    assert compilation_cache.stats()[1] == 1
    second = run(corejax.vmap(step), np.stack([X, 2 * X]))
    assert compilation_cache.stats()[3:] == (1, 1)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_is_loaded_is_analysed_as_what_is_compiled(cache: Path) -> None:
    def compiled() -> Any:
        corejax.clear_caches()
        return corejax.jit(loss).lower(X).compile()

    fresh, loaded = compiled(), compiled()
    assert compilation_cache.stats().hits == 1
    assert fresh.memory_analysis() == loaded.memory_analysis()
    assert fresh.cost_analysis() == loaded.cost_analysis()
    assert "HloModule jit_loss" in loaded.as_text()
    np.testing.assert_array_equal(fresh(X), loaded(X))
    np.testing.assert_array_equal(loaded(X), loaded(X))  # the second call takes the dispatcher's fast path


def test_observers_are_told_of_the_cache(cache: Path) -> None:
    def reasons() -> tuple[str, ...]:
        corejax.clear_caches()
        return next(e.reasons for e in corejax.explain(corejax.jit(loss))(X).jit if e.kind == "compile")

    assert reasons() == ("first run of this program",)
    assert reasons() == ("first run of this program", "read from the cache on disk")


def test_functions_that_differ_in_lines_share_an_entry(cache: Path) -> None:
    def f(x):
        return jnp.cos(x) * 2

    earlier = f

    def f(x):
        return jnp.cos(x) * 2

    run(earlier, X)
    run(f, X)
    (entry,) = ProgramFiles(str(cache)).entries()
    assert compilation_cache.stats()[1:] == (1, entry.size, 1, 1) and entry.hits == 1


def test_other_programs_types_and_options_have_entries_of_their_own(cache: Path) -> None:
    run(lambda x: x + 1, X)
    run(lambda x: x + 2, X)
    run(lambda x: x + 1, X[:3])
    run(lambda x: x + 1, X.astype(np.float64))
    assert compilation_cache.stats().hits == 0
    assert len(files_in(cache)) == 4


def test_names_depend_on_flags_and_on_all_of_the_text() -> None:
    device = _jaxlib.default_device()
    plain = disk_cache.entry_name("module @m {}", device)
    assert plain == disk_cache.entry_name("module @m {}", device)
    assert plain != disk_cache.entry_name("module @m {} ", device)
    assert plain != disk_cache.entry_name("module @m {}", device, [("xla_cpu_enable_fast_math", True)])
    assert disk_cache.entry_name("module @" + "m" * 500 + " {}", device).startswith("m" * 60 + "-")


OTHER_PROCESS = """
import corejax  # no plugin is loaded when its setting is given
corejax.config.update("jax_compilation_cache_dir", {directory!r})
corejax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
print(corejax.jit(lambda x: corejax.numpy.tanh(x) @ x)([1.0, 2.0, 3.0]) > 0)
print(*corejax.compilation_cache.stats()[3:])
"""


def test_other_processes_find_it(tmp_path: Path) -> None:
    """Whatever the hashes of strings are in them."""
    program = OTHER_PROCESS.format(directory=str(tmp_path / "programs")).replace(
        "[1.0", "__import__('numpy').array([1.0"
    )
    program = program.replace("3.0]", "3.0])")
    said = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment, timeout=120
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.split())
    assert said == [["True", "0", "1"], ["True", "1", "0"]]


# -- not kept ------------------------------------------------------------------------------------------------------


def test_programs_that_call_python_are_not_kept(cache: Path) -> None:
    double_p = Primitive("test.double", impl=lambda x: 2 * x, abstract_eval=lambda x: ShapedArray(x.shape, x.dtype))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the callback is slow
        np.testing.assert_array_equal(run(double_p.bind, X), 2 * X)
    assert not files_in(cache)


@pytest.mark.parametrize(
    "settings",
    [
        {"compilation_cache": False},
        {"compilation_cache_max_size": 0},
        {"compilation_cache_dir": ""},
        {"compilation_cache_max_size": 100},
        {"persistent_cache_min_compile_time_secs": 3600},
        {"persistent_cache_min_entry_size_bytes": 1 << 40},
    ],
)
def test_settings_that_keep_programs_out(cache: Path, settings: dict[str, Any]) -> None:
    with corejax.config.override(**settings):
        assert float(run(lambda x: x.sum(), X)) == 15
    assert not files_in(cache)


def test_clear_caches_leaves_the_disk_alone(cache: Path) -> None:
    run(lambda x: x.sum(), X)
    (cache / "notes.txt").write_text("mine")
    corejax.clear_caches()
    assert compilation_cache.stats().entries == 1
    compilation_cache.remove_entries()
    assert [path.name for path in files_in(cache)] == ["notes.txt"]


# -- damage --------------------------------------------------------------------------------------------------------


def _with_byte_changed(data: bytes) -> bytes:
    return data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:20],
        lambda data: data[:-1],
        _with_byte_changed,
        lambda data: data.replace(b"format 1", b"format 2"),
        lambda data: b"#!/bin/sh\n" + data,
    ],
)
def test_damaged_entries_are_compiled_again(cache: Path, damage: Any) -> None:
    run(lambda x: x.sum(), X)
    (path,) = files_in(cache)
    whole = path.read_bytes()
    assert whole.startswith(MAGIC)
    path.write_bytes(damage(whole))
    assert float(run(lambda x: x.sum(), X)) == 15
    assert compilation_cache.stats()[3:] == (0, 2)
    assert float(run(lambda x: x.sum(), X)) == 15
    assert compilation_cache.stats()[3:] == (1, 2)


def test_whole_entries_that_jaxlib_cannot_load_are_compiled_again(cache: Path) -> None:
    run(lambda x: x.sum(), X)
    (path,) = files_in(cache)
    ProgramFiles(str(cache)).write(path.name.removesuffix(SUFFIX), b"no executable")
    assert float(run(lambda x: x.sum(), X)) == 15
    assert ProgramFiles(str(cache)).read(path.name.removesuffix(SUFFIX)) != b"no executable"


# -- bounds --------------------------------------------------------------------------------------------------------


def test_the_least_recently_used_entries_go(tmp_path: Path) -> None:
    content = os.urandom(1000)
    files = ProgramFiles(str(tmp_path), 3500)
    for i, name in enumerate("abc"):
        files.write(name, content)
        os.utime(tmp_path / (name + SUFFIX), (i, i))
    assert files.read("a") == content  # used now
    files.write("d", content)
    assert {Path(entry.path).name[0] for entry in files.entries()} == {"a", "c", "d"}
    assert sum(entry.size for entry in files.entries()) <= 3500
    files.write("e", os.urandom(4000))
    assert files.read("e") is None


def test_files_that_nobody_finishes_go(tmp_path: Path) -> None:
    for name, when in (("old.corejax-unfinished", 0), ("new.corejax-unfinished", None)):
        (tmp_path / name).write_bytes(b"")
        if when is not None:
            os.utime(tmp_path / name, (when, when))
    ProgramFiles(str(tmp_path)).write("a", b"content")
    assert [path.name for path in files_in(tmp_path)] == ["a" + SUFFIX, "new.corejax-unfinished"]


def test_many_writers_and_readers(tmp_path: Path) -> None:
    """Whoever reads finds nothing or something whole, though all write, read and evict at once."""
    contents = {str(i): bytes([i]) * 10 + os.urandom(2000) for i in range(4)}
    found: list[bool] = []

    def work() -> None:
        files = ProgramFiles(str(tmp_path), 5000)
        for i in range(80):
            name = str(i % 4)
            files.write(name, contents[name])
            read = files.read(str((i + 1) % 4))
            found.append(read is None or read == contents[str((i + 1) % 4)])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 320 and all(found)
    assert sum(entry.size for entry in ProgramFiles(str(tmp_path)).entries()) <= 5000


# -- whose directory it is ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o777, 0o720, 0o702])
def test_a_directory_that_others_can_write_to_is_not_used(cache: Path, mode: int) -> None:
    cache.mkdir()
    cache.chmod(mode)
    with pytest.warns(RuntimeWarning, match=r"is not used: other users can write to it.*chmod 700") as seen:
        assert float(run(lambda x: x.sum(), X)) == 15
    assert len(seen) == 1
    assert float(run(lambda x: 3 * x.sum(), X)) == 45  # no second warning: warnings are errors in tests
    assert not files_in(cache)


def test_a_directory_of_another_user_is_not_used(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(lambda x: x.sum(), X)
    assert cache.stat().st_mode & 0o777 == 0o700
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with pytest.warns(RuntimeWarning, match=f"is not used: it belongs to the user with number {user}"):
        assert float(run(lambda x: x.sum(), X)) == 15
    assert compilation_cache.stats().hits == 0


def test_a_directory_that_others_can_read_is_used(cache: Path) -> None:
    cache.mkdir(mode=0o755)
    run(lambda x: x.sum(), X)
    assert len(files_in(cache)) == 1


# -- the default ----------------------------------------------------------------------------------------------------

BY_DEFAULT = """
import numpy as np, warnings
warnings.simplefilter("error")
import corejax, corejax.numpy as jnp
corejax.config.update("persistent_cache_min_compile_time_secs", 0)
f = corejax.jit(lambda x: jnp.sin(x).sum())
f(np.ones(3))
print(*corejax.compilation_cache.stats()[1:2], *corejax.compilation_cache.stats()[3:])
"""


def by_default(home: Path, **settings: str) -> list[str]:
    environment = {k: v for k, v in os.environ.items() if k != "COREJAX_COMPILATION_CACHE_DIR"}
    environment |= {"HOME": str(home), "XDG_CACHE_HOME": str(home / "caches"), **settings}
    done = subprocess.run(
        [sys.executable, "-c", BY_DEFAULT], capture_output=True, text=True, check=False, env=environment, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.skipif(sys.platform != "linux", reason="the directory is chosen by XDG_CACHE_HOME")
def test_programs_are_stored_in_the_users_cache_by_default(tmp_path: Path) -> None:
    assert by_default(tmp_path) == ["1", "0", "1"]
    assert [path.name for path in (tmp_path / "caches").iterdir()] == ["corejax"]
    assert by_default(tmp_path / "other", COREJAX_COMPILATION_CACHE="off") == ["0", "0", "0"]
    assert not (tmp_path / "other").exists()
    (tmp_path / "file").write_text("")  # stands for a home that cannot be written to: no warning
    assert by_default(tmp_path / "file") == ["0", "0", "0"]


def test_jaxs_name_of_the_setting(cache: Path) -> None:
    with corejax.config.override(enable_compilation_cache=False):
        assert not compilation_cache.is_initialized() and corejax.config.compilation_cache is False
    assert compilation_cache.is_initialized()


# -- the command ----------------------------------------------------------------------------------------------------


def test_the_command_lists_functions(cache: Path) -> None:
    def polynomial(x: Any) -> Any:
        return (x**3 + x).sum()

    for _ in range(3):
        run(polynomial, X)
    run(loss, X)
    invoke = click.testing.CliRunner().invoke
    text = invoke(cache_command, []).output
    assert f"{cache}: 2 programs" in text and "of 1,024 MiB" in text, text
    assert re.search(r"1 +[\d.]+ +2  \d{4}-\d\d-\d\d \d\d:\d\d  polynomial$", text, re.MULTILINE), text
    found = json.loads(invoke(cache_command, ["--json"]).output)
    assert {f["function"]: f["hits"] for f in found["functions"]} == {"polynomial": 2, "loss": 0}
    assert (found["format"], found["version"]) == ("corejax-cache", 1)
    assert "0 programs" in invoke(cache_command, ["--clear"]).output
    assert not files_in(cache)
    with corejax.config.override(compilation_cache=False):
        assert "is off" in invoke(cache_command, []).output


# -- trouble -------------------------------------------------------------------------------------------------------


def test_a_directory_that_is_none_warns_once(cache: Path) -> None:
    cache.write_text("a file")
    with pytest.warns(RuntimeWarning, match=r"cannot be read.*COREJAX_COMPILATION_CACHE_DIR") as seen:
        assert float(run(lambda x: x.sum(), X)) == 15
    assert len(seen) == 1
    assert float(run(lambda x: 2 * x.sum(), X)) == 30  # no warning: those are errors in tests
    assert cache.read_text() == "a file"
    assert corejax.compilation_cache.stats()[1:3] == (0, 0)
    corejax.compilation_cache.remove_entries()


def test_a_setting_makes_errors_of_warnings(tmp_path: Path) -> None:
    nowhere = tmp_path / "file"
    nowhere.write_text("")
    settings = {"compilation_cache_dir": str(nowhere), "persistent_cache_min_compile_time_secs": 0}
    with corejax.config.override(**settings, raise_persistent_cache_errors=True):
        with pytest.raises(OSError, match="file"):
            run(lambda x: x * 5, X)
    np.testing.assert_array_equal(run(lambda x: x * 5, X), 5 * X)


def test_a_full_disk_warns_and_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch, pytest.warns(RuntimeWarning, match=r"written: .*No space left.*Make\s+room"):
        patch.setattr(os, "replace", full)
        assert float(run(lambda x: x.sum(), X)) == 15
    assert not files_in(cache)
    run(lambda x: x.sum(), X)
    assert len(files_in(cache)) == 1


def test_an_interrupt_while_writing_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "replace", interrupted)
        run(lambda x: x.sum(), X)
    assert not files_in(cache)
    assert float(run(lambda x: x.sum(), X)) == 15


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("compilation_cache_dir", 3),
        ("compilation_cache_max_size", -2),
        ("compilation_cache_max_size", "much"),
        ("persistent_cache_min_compile_time_secs", float("nan")),
        ("persistent_cache_min_entry_size_bytes", None),
        ("compilation_cache", "perhaps"),
    ],
)
def test_values_that_settings_refuse(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name):
        corejax.config.update(name, value)


def test_a_directory_may_be_a_path_or_none(tmp_path: Path) -> None:
    with corejax.config.override(compilation_cache_dir=tmp_path):
        assert corejax.config.compilation_cache_dir == str(tmp_path)
        assert compilation_cache.is_initialized()
        compilation_cache.set_cache_dir(None)
        assert not compilation_cache.is_initialized()
        assert compilation_cache.stats()[:3] == ("", 0, 0)


def test_misspelt_settings_are_told_with_those_of_plugins() -> None:
    with pytest.raises(AttributeError, match=r"'compilation_cache_di'; did you mean 'compilation_cache_dir'"):
        corejax.config.update("compilation_cache_di", "x")
    with pytest.raises(AttributeError, match="compilation_cache_dir"):
        _ = corejax.config.compilation_cache_di
