"""Several processes on this machine: they train to the numbers of one, and say what is missing."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import corejax
from corejax import distributed
from corejax.errors import BackendError

PROGRAM = """
import sys

import numpy as np

import corejax
import corejax.numpy as jnp
from corejax import NamedSharding, P, lax
from corejax.experimental import multihost_utils

number, count, port = map(int, sys.argv[1:])
corejax.distributed.initialize(f"127.0.0.1:{port}", count, number, initialization_timeout=120)
assert corejax.process_index() == number and corejax.process_count() == count and corejax.distributed.is_initialized()
assert corejax.device_count() == count and [d.process_index for d in corejax.local_devices()] == [number]
np.testing.assert_allclose(corejax.jit(jnp.sin)(0.5), np.sin(0.5), rtol=1e-6)  # on a device of its own

rng = np.random.default_rng(0)
xs, ys = rng.normal(size=(16, 3)).astype(np.float32), rng.normal(size=16).astype(np.float32)
mesh = corejax.make_mesh((count,), ("data",))
rows = slice(16 // count * number, 16 // count * (number + 1))
x, y = (corejax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), v[rows]) for v in (xs, ys))
assert x.shape == (16, 3) and not x.is_fully_addressable and repr(x) == "Array(shape=(16, 3), dtype=float32)"
w = corejax.device_put(np.zeros(3, np.float32), NamedSharding(mesh, P()))


def loss(w, x, y):
    return jnp.mean((x @ w - y) ** 2)


step = corejax.jit(lambda w, x, y: w - 0.1 * corejax.grad(loss)(w, x, y))
alone = np.zeros(3, np.float32)
for _ in range(4):
    w = step(w, x, y)
    alone = alone - 0.1 * (2 / 16 * xs.T @ (xs @ alone - ys))
np.testing.assert_allclose(np.asarray(w), alone, rtol=1e-5)

total = corejax.shard_map(lambda a: lax.psum(a.sum(), "data"), mesh=mesh, in_specs=P("data"), out_specs=P())
np.testing.assert_allclose(corejax.jit(total)(x), xs.sum(), rtol=1e-5)
np.testing.assert_allclose(total(x), xs.sum(), rtol=1e-5)
everywhere = corejax.device_put(x, NamedSharding(mesh, P()))
np.testing.assert_array_equal(np.asarray(everywhere), xs)
turned = corejax.sharding.Mesh(np.array(corejax.devices())[::-1], ("data",))
(part,) = corejax.device_put(everywhere, NamedSharding(turned, P("data"))).addressable_shards
np.testing.assert_array_equal(np.asarray(part.data), xs[::-1][rows][::-1])
try:
    np.asarray(x)
except RuntimeError as error:
    assert "parts on devices of other processes" in str(error)

gathered = multihost_utils.process_allgather({"a": np.arange(2) + 10 * number})["a"]
np.testing.assert_array_equal(gathered, np.arange(2) + 10 * np.arange(count)[:, None])
together = multihost_utils.process_allgather([x, x[::2], everywhere, np.float32(number)], tiled=True)
for got, wanted in zip(together, [xs, xs[::2], xs, np.arange(count)], strict=True):
    assert type(got) is np.ndarray
    np.testing.assert_array_equal(got, wanted)
try:
    multihost_utils.process_allgather(x)
except ValueError as error:
    assert "process_allgather: an array of shape (16, 3) is sharded" in str(error)
else:
    raise AssertionError("not refused")
sent = multihost_utils.broadcast_one_to_all(np.array([1.5, np.nan]) * (number + 1), is_source=number == 1)
np.testing.assert_array_equal(sent, [3.0, np.nan])
multihost_utils.assert_equal(alone)
own = np.arange(2.0, dtype=np.float32) + number
made = multihost_utils.host_local_array_to_global_array({"a": own}, mesh, P("data"))["a"]
assert made.shape == (2 * count,) and not made.is_fully_addressable
np.testing.assert_array_equal(multihost_utils.global_array_to_host_local_array(made, mesh, P("data")), own)
everywhere = multihost_utils.global_array_to_host_local_array(made, mesh, P())
np.testing.assert_array_equal(everywhere, np.add.outer(np.arange(count), np.arange(2.0)).ravel())
nothing = np.zeros((0, 2 * count), np.float32)
empty = corejax.make_array_from_callback(nothing.shape, NamedSharding(mesh, P(None, "data")), lambda i: nothing[i])
assert empty.shape == (0, 2 * count) and not empty.is_fully_addressable
multihost_utils.sync_global_devices("end")
print("done", number)
"""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def start(program: Path, *args: object) -> subprocess.Popen[str]:
    environment = {**os.environ, "COREJAX_NUM_CPU_DEVICES": "1"}
    command = [sys.executable, str(program), *map(str, args)]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=program.parent
    )


@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_processes_train_to_the_numbers_of_one(count: int, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    for number, text in enumerate(run_all(program, count)):
        assert f"done {number}" in text


def run_all(program: Path, count: int) -> list[str]:
    """What the processes print, all of which end well."""
    port = free_port()
    running = [start(program, number, count, port) for number in range(count)]
    try:
        printed = [process.communicate(timeout=240)[0] for process in running]
    finally:
        for process in running:
            process.kill()
    for process, text in zip(running, printed, strict=True):
        assert process.returncode == 0, text
    return printed


def test_different_programs_are_told(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        """
import sys
import numpy as np
import corejax
import corejax.numpy as jnp

number, count, port = map(int, sys.argv[1:])
corejax.distributed.initialize(f"127.0.0.1:{port}", count, number)
sharding = corejax.NamedSharding(corejax.make_mesh((count,), ("data",)), corejax.P("data"))


def ones(size):
    return corejax.make_array_from_process_local_data(sharding, np.ones(size, np.float32))


if number == 0:  # who only compiles a program runs none
    corejax.jit(lambda x: -x).lower(ones(2)).compile()


def scaled(x, by=1 + number):
    return jnp.sum(x) * by


def shifted(x):
    return jnp.sum(x) + 1


for fun, size in ((scaled, 4), (shifted, 4 + 4 * number)):
    jitted = corejax.jit(fun)
    for attempt in range(2):  # nor does a second try wait for what never comes
        try:
            jitted(ones(size))
        except corejax.errors.BackendError as error:
            print(f"try {attempt}: {error}")
total = corejax.jit(jnp.sum)(ones(4))
print(total, repr(total), f"{total:.1f}")
"""
    )
    printed = run_all(program, 2)
    other = "which runs another program jit_scaled of arguments of the same types (8xf32). All processes must run"
    for number, text in enumerate(printed):
        head = f"process {number} runs the program jit_scaled of (8xf32) on devices that it shares with process"
        for attempt in range(2):
            assert f"try {attempt}: {head} {1 - number}, {other}" in text
        assert "8.0 Array(8., dtype=float32) 8.0" in text
    assert "process 0, which runs the program jit_shifted of (8xf32). All" in printed[1]
    assert "process 1, which runs the program jit_shifted of (16xf32). All" in printed[0]


@pytest.mark.slow
def test_the_others_end_when_one_dies(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        """
import os, sys
import numpy as np
import corejax
from corejax.experimental import multihost_utils

number, count, port = map(int, sys.argv[1:])
corejax.distributed.initialize(f"127.0.0.1:{port}", count, number, heartbeat_timeout_seconds=5)
multihost_utils.sync_global_devices("start")
if number == 2:
    os._exit(3)
multihost_utils.process_allgather(np.float32(number))
"""
    )
    port = free_port()
    running = [start(program, number, 3, port) for number in range(3)]
    printed = [process.communicate(timeout=120)[0] for process in running]
    assert running[2].returncode == 3
    for process, text in zip(running[:2], printed[:2], strict=True):
        assert process.returncode != 0
        assert "stopped sending heartbeats" in text and "\n2\n" in text, "it says who"


def test_a_process_alone() -> None:
    from corejax.experimental import multihost_utils

    assert not distributed.is_initialized()
    distributed.shutdown()
    distributed.wait_at_barrier("here")
    multihost_utils.sync_global_devices("here")
    np.testing.assert_array_equal(multihost_utils.process_allgather(np.arange(2)), [[0, 1]])
    np.testing.assert_array_equal(multihost_utils.process_allgather(np.arange(2), tiled=True), [0, 1])
    assert multihost_utils.broadcast_one_to_all({"a": 3})["a"] == 3


@pytest.mark.parametrize(
    ("args", "error", "words"),
    [
        ((), ValueError, "coordinator_address is not given, and COREJAX_COORDINATOR_ADDRESS is not set"),
        (("host",), ValueError, "num_processes is not given"),
        (("host:1", "two", 0), TypeError, "num_processes must be an integer, got 'two'"),
        (("host", 2, 0), ValueError, "coordinator_address must be host:port, got 'host'"),
        (("host:1", 2, 2), ValueError, "got 2 of 2"),
        (("host:1", 0, 0), ValueError, "got 0 of 0"),
        (("host:1", 2, 1), BackendError, "before the first use of a device; cpu is in use"),
    ],
)
def test_what_is_refused(
    args: tuple[object, ...], error: type[Exception], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("COREJAX_COORDINATOR_ADDRESS", "COREJAX_NUM_PROCESSES", "COREJAX_PROCESS_ID", "SLURM_NTASKS"):
        monkeypatch.delenv(name, raising=False)
    corejax.devices()
    with pytest.raises(error, match=words):
        distributed.initialize(*args)  # type: ignore[arg-type]


def test_a_coordinator_that_is_not_there(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import corejax, sys\n"
        "try:\n"
        "    corejax.distributed.initialize(f'127.0.0.1:{sys.argv[1]}', 2, 1, initialization_timeout=1)\n"
        "except corejax.errors.BackendError as error:\n"
        "    print(error)\n"
    )
    text, _ = start(program, free_port()).communicate(timeout=60)
    assert "process 1 of 2 waited 1 s for the coordinator, process 0, at 127.0.0.1:" in text


def test_others_that_do_not_come(tmp_path: Path) -> None:
    """They are told, as is who interrupts the wait, and go on alone."""
    program = tmp_path / "program.py"
    program.write_text(
        """
import sys
import corejax

for _ in range(2):
    try:
        corejax.distributed.initialize(f"127.0.0.1:{sys.argv[1]}", 2, 0, initialization_timeout=1)
    except corejax.errors.BackendError as error:
        print(error)
print(corejax.distributed.is_initialized(), corejax.jit(lambda x: x + 1)(1.0))
"""
    )
    text, _ = start(program, free_port()).communicate(timeout=60)
    assert "process 0 of 2 waited 1 s for the others to join at 127.0.0.1:" in text
    assert "process 0 of 2 has waited for the others in vain and cannot try again; restart it" in text
    assert "False 2.0" in text
