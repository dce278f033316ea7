"""`corejax.profiler`: traces have the user's names and lines; mistakes are said at once, and leave nothing behind."""

from __future__ import annotations

import gzip
import inspect
import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax_xla_backend import _perfetto_server, profiler
from corejax_xla_backend._hlo_text import Module, Origin
from corejax_xla_backend._jaxlib import _profiler
from corejax_xla_backend._jaxlib._probe import core

QUIET = profiler.ProfileOptions()
QUIET.python_tracer_level = 0


@pytest.fixture(autouse=True)
def nothing_stays_recorded() -> Iterator[None]:
    yield
    assert profiler._running is None and profiler._server is None
    assert not _profiler.TraceMe.is_enabled()


def events(log_dir: Path, name: str = "*.trace.json.gz") -> list[dict[str, Any]]:
    """The events of the only trace in a directory."""
    (path,) = log_dir.glob(f"plugins/profile/*/{name}")
    with gzip.open(path) as file:
        found = json.load(file)
    assert "metadata" not in found  # Perfetto refuses it
    return [event for event in found["traceEvents"] if "name" in event]


@cj.jit
def network(x: Any, w: Any) -> Any:
    with cj.named_scope("first"):
        x = jnp.tanh(x @ w)
    with cj.named_scope('second "} {'):
        return jnp.sort(jnp.sin(x @ w), axis=0)


LINE = inspect.getsourcelines(network.__wrapped__)[1] + 3  # of tanh


def test_operations_have_the_users_names_and_lines(tmp_path: Path) -> None:
    x = jnp.ones((64, 64))

    def called() -> None:
        network(x, x).block_until_ready()

    called()
    with profiler.trace(tmp_path, create_perfetto_trace=True):
        for i in range(2):
            with profiler.StepTraceAnnotation("train", step_num=i):
                called()
    (written,) = (path for path in tmp_path.glob("plugins/profile/*") if path.is_dir())
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".corejax")]
    found = events(tmp_path)
    operations = {e["name"]: e["args"] for e in found if "hlo_op" in e.get("args", {})}
    names = [name for name in operations if name.startswith("jit(network)/")]
    assert {name.rpartition("/")[2] for name in names} >= {"dot_general", "sort"}
    assert any(name.startswith("jit(network)/first/") for name in names)
    assert any(name.startswith('jit(network)/second "} {/') for name in names)
    first = next(operations[name] for name in names if name.startswith("jit(network)/first/"))
    assert first["source"] == f"{__file__}:{LINE} (network)" and first["hlo_module"] == "jit_network"
    assert [e["args"]["step_num"] for e in found if e["name"] == "train"] == ["0", "1"]
    assert any(
        e["name"].startswith("$test_profiler.py:") and e["name"].endswith(" called") for e in found
    )  # Python's calls
    copy = gzip.decompress((written / "perfetto_trace.json.gz").read_bytes())
    assert [e for e in json.loads(copy)["traceEvents"] if "name" in e] == found
    (xplane,) = written.glob("*.xplane.pb")
    lines = [line for plane in profiler.ProfileData.from_file(str(xplane)).planes for line in plane.lines]
    assert any(event.name == "train" for line in lines for event in line.events)


def test_annotations_are_in_the_trace(tmp_path: Path) -> None:
    @profiler.annotate_function
    def annotated(x: int, *, y: int) -> int:
        """Doc."""
        return x + y

    with profiler.trace(tmp_path, profiler_options=QUIET):
        with profiler.TraceAnnotation("outer é \ud800", size=3, text="words"):
            assert annotated(1, y=2) == 3
        profiler.annotate_function(annotated, name="other", kind="x")(1, y=2)
        with pytest.raises(TypeError, match="missing"):
            annotated(1)  # type: ignore[call-arg]
    found = {event["name"]: event.get("args") for event in events(tmp_path)}
    assert found["outer é ?"] == {"size": "3", "text": "words"}
    assert found["other"] == {"kind": "x"}
    assert any(name.endswith("<locals>.annotated") for name in found)
    assert (annotated.__name__, annotated.__doc__) == ("annotated", "Doc.")


def test_traces_of_one_second_do_not_replace_each_other(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        with profiler.trace(tmp_path, profiler_options=QUIET), profiler.TraceAnnotation(name):
            pass
    paths = tmp_path.glob("plugins/profile/*/*.trace.json.gz")
    found = [{e.get("name") for e in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]} for path in paths]
    assert len(found) == 3
    assert all(any(name in each for each in found) for name in ("one", "two", "three"))


def test_a_failing_block_is_recorded_too(tmp_path: Path) -> None:
    @profiler.trace(tmp_path, profiler_options=QUIET)
    def fails() -> None:
        with profiler.TraceAnnotation("before"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fails()
    assert any(event["name"] == "before" for event in events(tmp_path))


def test_start_twice_and_stop_twice(tmp_path: Path) -> None:
    profiler.start_trace(tmp_path, profiler_options=QUIET)
    with pytest.raises(RuntimeError, match=rf"a trace for '{tmp_path}' is being recorded already; stop_trace\(\) ends"):
        profiler.start_trace(tmp_path / "other")
    assert not (tmp_path / "other").exists()
    profiler.stop_trace()
    with pytest.raises(RuntimeError, match=r"stop_trace: no trace is being recorded; start_trace\(log_dir\)"):
        profiler.stop_trace()
    assert events(tmp_path)


def test_another_profiler_is_noticed_at_once(tmp_path: Path) -> None:
    session = _profiler.ProfilerSession(QUIET)
    try:
        with pytest.raises(RuntimeError, match="another profiler, perhaps jax's, is recording"):
            profiler.start_trace(tmp_path)
    finally:
        session.stop()


def test_directories_that_cannot_be_written_are_noticed_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "inner"):
        with pytest.raises(OSError, match="start_trace cannot write to its log_dir") as caught:
            profiler.start_trace(path)
        assert caught.value.filename == str(path)
    with pytest.raises(TypeError):
        profiler.start_trace(3)  # type: ignore[arg-type]


def test_what_cannot_be_written_at_the_end_is_lost_and_said(tmp_path: Path) -> None:
    class Session:
        def stop(self) -> bytes:
            return b""

        def export(self, recorded: bytes, directory: str) -> None:
            raise RuntimeError("NO SPACE")

    profiler._running = profiler._Running(Session(), str(tmp_path), False, False)
    with pytest.raises(RuntimeError, match=r"the trace for .* is lost: NO SPACE"):
        profiler.stop_trace()
    assert not list(tmp_path.iterdir())


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(TypeError, match="StepTraceAnnotation: the name must be a string, got 3 of type int"):
        profiler.StepTraceAnnotation(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="annotate_function: func must be a function, got 'f' of type str"):
        profiler.annotate_function("f")  # type: ignore[arg-type]


# -- names of instructions -----------------------------------------------------------------------------------------

HEAD = """\
HloModule jit_f

FileNames
1 "a \\"b\\".py"

FunctionNames
1 "f"
2 "<lambda>"

FileLocations
1 {file_name_id=1 function_name_id=2 line=9 end_line=9 column=13 end_column=13}
2 {file_name_id=1 function_name_id=1 line=10 end_line=10 column=12 end_column=12}

StackFrames
1 {file_location_id=2 parent_frame_id=1}
2 {file_location_id=1 parent_frame_id=1}

"""


@pytest.mark.parametrize(
    ("metadata", "origin"),
    [
        ('op_name="jit(f)/sin" stack_frame_id=2', Origin("jit(f)/sin", 'a "b".py:9 (<lambda>)')),
        ('op_name="jit(f)/sin" stack_frame_id=1', Origin("jit(f)/sin", 'a "b".py:10 (f)')),
        ('op_type="sin" op_name="x\\"} y" stack_frame_id=7', Origin('x"} y', "")),
        ('op_name="sin" source_file="a b.py" source_line=4', Origin("sin", "a b.py:4")),
        ('op_name="sin"', Origin("sin", "")),
        ("stack_frame_id=1", None),
    ],
)
def test_instructions_of_a_text(metadata: str, origin: Origin | None) -> None:
    text = f"{HEAD}%main (p: f32[]) -> f32[] {{\n  ROOT %sine.3 = f32[] sine(%p), metadata={{{metadata}}}\n}}\n"
    assert dict(Module(text).origins()) == ({} if origin is None else {"sine.3": origin})


def test_fused_instructions_know_their_parts() -> None:
    program = cj.jit(lambda x: jnp.sin(x) * jnp.cos(x) + 1).lower(jnp.ones(1000)).compile()
    found = [each for _, each in Module(program.as_text()).origins() if each.fused]
    names = {name.rpartition("/")[2] for each in found for name in each.fused}
    assert names >= {"sin", "cos", "mul", "add"}
    assert all(each.name in each.fused for each in found)


def test_programs_of_one_name_do_not_lend_each_other_names() -> None:
    programs = []
    for scope in ("here", "there"):

        def twin(x: Any, scope: str = scope) -> Any:
            with cj.named_scope(scope):
                return jnp.sin(x)

        programs.append(cj.jit(twin).lower(jnp.ones(3)).compile())
    known = _profiler.live_instructions({"jit_twin"})
    texts = [dict(Module(program.as_text()).origins()) for program in programs]
    assert texts[0].keys() == texts[1].keys() and texts[0] != texts[1]
    name = next(name for name in texts[0] if texts[0][name] != texts[1][name])
    assert known["jit_twin", name] is None
    assert _profiler.live_instructions(set()) == {}


# -- memory, servers, and the whole of it --------------------------------------------------------------------------


def test_memory_of_devices(tmp_path: Path) -> None:
    kept = cj.device_put(jnp.ones(12345))
    profiler.save_device_memory_profile(tmp_path / "memory.prof")
    found = json.loads(core.pprof_profile_to_json(gzip.decompress((tmp_path / "memory.prof").read_bytes())))
    assert any(12345 * 4 in map(int, sample["value"]) for sample in found["sample"])
    assert len(profiler.device_memory_profile("cpu")) > 0
    with pytest.raises(cj.errors.BackendError, match="abacus"):
        profiler.device_memory_profile("abacus")
    del kept


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_servers() -> None:
    with pytest.raises(ValueError, match="port must be a number from 1 to 65535, got -4"):
        profiler.start_server(-4)
    with socket.socket() as other:
        other.bind(("", 0))
        other.listen()
        with pytest.raises(OSError, match="start_server: port"):
            profiler.start_server(other.getsockname()[1])
    profiler.start_server(free_port())
    with pytest.raises(ValueError, match=r"has a profiler server; stop_server\(\) ends it"):
        profiler.start_server(free_port())
    profiler.stop_server()
    with pytest.raises(ValueError, match="no profiler server"):
        profiler.stop_server()


def test_a_trace_is_handed_to_perfetto(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    port = free_port()
    monkeypatch.setattr(_perfetto_server, "_PORT", port)
    given: list[bytes] = []
    threads: list[threading.Thread] = []

    def fetch() -> None:
        for path in ("favicon.ico", "perfetto_trace.json.gz"):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}") as answer:
                    assert answer.headers["Access-Control-Allow-Origin"] == "https://ui.perfetto.dev"
                    given.append(answer.read())
            except urllib.error.HTTPError as error:
                assert error.code == 404

    class Server(_perfetto_server.http.server.HTTPServer):  # type: ignore[name-defined, misc]
        def server_activate(self) -> None:
            super().server_activate()
            threads.append(threading.Thread(target=fetch))
            threads[0].start()

    monkeypatch.setattr(_perfetto_server.http.server, "HTTPServer", Server)
    with profiler.trace(tmp_path, create_perfetto_link=True, profiler_options=QUIET):
        pass
    threads[0].join(20)
    assert f"http://127.0.0.1:{port}/perfetto_trace.json.gz" in capsys.readouterr().out
    assert json.loads(gzip.decompress(given[0]))["traceEvents"] is not None


def test_names_and_arguments_are_jaxs() -> None:
    theirs = pytest.importorskip("jax.profiler")
    names = {name for name in dir(theirs) if not name.startswith("_")}
    assert names <= set(profiler.__all__)
    for name in names:
        if inspect.isfunction(getattr(theirs, name)):
            wanted = list(inspect.signature(getattr(theirs, name)).parameters)
            assert list(inspect.signature(getattr(profiler, name)).parameters) == wanted, name
