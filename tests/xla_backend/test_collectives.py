"""`debug.collectives`: what is read of a compiled program's text."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import corejax
import corejax.numpy as jnp
from corejax import NamedSharding, P, lax
from corejax.cli import main
from corejax.debug import collectives
from corejax.experimental import topologies

pytest.importorskip("jaxlib")
text_of = pytest.importorskip("corejax_xla_backend._hlo_text")
AXES = {"data": 2, "model": 4}


@pytest.fixture(scope="module")
def mesh() -> Any:
    return topologies.make_mesh(topologies.get_topology_desc("2x4"), tuple(AXES.values()), tuple(AXES))


def compiled(mesh: Any, body: Any, shape: tuple[int, ...] = (16, 32), dtype: Any = np.float32, **specs: Any) -> Any:
    """A program whose blocks are halves of the rows."""
    mapped = corejax.shard_map(
        body, mesh=mesh, in_specs=P("data"), out_specs=specs.get("out", P("data")), check_vma=False
    )
    return corejax.jit(mapped).lower(corejax.ShapeDtypeStruct(shape, dtype)).compile()


RING = [(i, (i + 1) % 4) for i in range(4)]
CASES = {
    "all-reduce": (lambda x: lax.psum(x, "model"), ("model",), 4, "add", 8 * 32 * 4),
    "greatest": (lambda x: lax.pmax(x, ("data", "model")), ("data", "model"), 8, "maximum", 8 * 32 * 4),
    "all-gather": (lambda x: lax.all_gather(x, "model", axis=1), ("model",), 4, "", 4 * 8 * 32 * 4),
    "reduce-scatter": (
        lambda x: lax.psum_scatter(x, "data", scatter_dimension=1, tiled=True),
        ("data",),
        2,
        "add",
        8 * 16 * 4,
    ),
    "all-to-all": (lambda x: lax.all_to_all(x, "model", 1, 1, tiled=True), ("model",), 4, "", 8 * 32 * 4),
    "collective-permute": (lambda x: lax.ppermute(x, "model", RING), ("model",), 2, "", 8 * 32 * 4),
}


@pytest.mark.parametrize("name", CASES)
def test_each_kind(mesh: Any, name: str) -> None:
    body, axes, devices, reduction, nbytes = CASES[name]
    (found,) = collectives(compiled(mesh, body), mesh)
    assert found.kind == ("all-reduce" if name == "greatest" else name)
    assert (found.axes, found.devices, found.reduction, found.nbytes) == (axes, devices, reduction, nbytes)
    assert found.times == 1 and found.line.startswith("test_collectives.py:") and found.op_name.startswith("jit(")
    assert all(each.startswith("f32[8,") for each in found.types)


@pytest.mark.parametrize(
    ("dtype", "bits"), [("bool", 8), ("int8", 8), ("float16", 16), ("uint64", 64), ("complex64", 64)]
)
def test_bytes_of_types(mesh: Any, dtype: str, bits: int) -> None:
    with corejax.enable_x64():
        (found,) = collectives(compiled(mesh, lambda x: lax.ppermute(x, "model", RING), dtype=dtype))
    assert found.nbytes == 8 * 32 * bits // 8


def test_the_mesh_is_that_of_the_shardings(mesh: Any) -> None:
    given = corejax.ShapeDtypeStruct((16, 32), np.float32, sharding=NamedSharding(mesh, P("data", "model")))
    program = corejax.jit(lambda x: x.sum()).lower(given).compile()
    assert {x.axes for x in collectives(program)} <= {("data",), ("model",), ("data", "model")}
    (unnamed,) = collectives(compiled(mesh, lambda x: lax.psum(x, "model")).as_text())
    assert unnamed.axes is None and unnamed.devices == 4 and "groups of 4" in str(collectives(program.as_text()))
    odd = corejax.sharding.AbstractMesh((4, 2), ("a", "b"))
    assert collectives(compiled(mesh, lambda x: lax.psum(x, "model")), odd)[0].axes is None  # not the whole of "a"


def test_loops_and_branches(mesh: Any) -> None:
    def summed(x: Any) -> Any:
        return lax.psum(x, "model") / 8

    def nested(x: Any) -> Any:
        return lax.scan(lambda c, _: (lax.fori_loop(0, 3, lambda i, c: summed(c), c), None), x, None, length=5)[0]

    def endless(x: Any) -> Any:
        return lax.while_loop(lambda c: c.sum() > 1, summed, x)

    def either(x: Any) -> Any:
        return lax.cond(x[0, 0] > 0, summed, lambda x: lax.ppermute(x, "model", RING), x)

    assert [x.times for x in collectives(compiled(mesh, nested))] == [15]
    found = collectives(compiled(mesh, endless))
    assert {x.kind for x in found} == {"all-reduce"}
    assert found.times is None and found.nbytes is None and "an unknown number in a run" in str(found)
    assert sorted(x.kind for x in collectives(compiled(mesh, either), mesh)) == ["all-reduce", "collective-permute"]


def test_of_the_table_and_copies(mesh: Any) -> None:
    program = compiled(mesh, lambda x: (lax.psum(x, "model"), lax.pmax(x * 2, "data")), out=(P("data"), P(None)))
    found = collectives(program, mesh)
    assert len(found) == 2 == found.times and found.nbytes == 2 * 8 * 32 * 4
    assert len(found.of("all-reduce")) == 2 and not found.of("all-gather")
    with pytest.raises(ValueError, match=r"kind must be one of all-gather, .*got 'allreduce'"):
        found.of("allreduce")
    assert len(found.of(axes="data")) == 1 == len(found.of("all-reduce", ["model"]))
    lines = str(found).splitlines()
    assert lines[0].split() == ["collective", "along", "times", "bytes", "of", "line", "for"]
    assert any("all-reduce (maximum)  data" in line for line in lines) and lines[-1].startswith(
        "2 in a run, 2,048 bytes"
    )
    assert pickle.loads(pickle.dumps(found)) == found and repr(found).startswith("Collectives([Collective(kind=")
    alone = collectives(corejax.jit(jnp.sin).lower(np.ones(3, np.float32)).compile())
    assert alone == () and str(alone) == "no collectives" and alone.times == 0


def test_bad_arguments(mesh: Any) -> None:
    with pytest.raises(
        TypeError, match=r"debug.collectives: program must be the result of .*, or its as_text\(\), got 3"
    ):
        collectives(3)
    with pytest.raises(ValueError, match="this is not the text of a compiled program: 'module"):
        collectives(corejax.jit(jnp.sin).lower(1.0).as_text())
    with pytest.raises(ValueError, match="this is not the text of a compiled program"):
        collectives("")


# -- texts that other versions and platforms write -----------------------------------------------------------------

ASYNC = """HloModule jit_f, is_scheduled=true, num_partitions=8

FileNames
1 "/models/step.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=1 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}


%add (x: bf16[], y: bf16[]) -> bf16[] {
  %x = bf16[] parameter(0)
  %y = bf16[] parameter(1)
  ROOT %sum = bf16[] add(%x, %y)
}

%scatter (p: bf16[16,4]) -> bf16[2,4] {
  %p = bf16[16,4]{1,0} parameter(0)
  ROOT %rs = bf16[2,4]{1,0} reduce-scatter(%p), channel_id=3, replica_groups={}, dimensions={0}, to_apply=%add
}

ENTRY %main (a: bf16[8,4], b: bf16[16,4]) -> (bf16[8,4], bf16[16,4], bf16[2,4]) {
  %a = bf16[8,4]{1,0:T(8,128)(2,1)} parameter(0)
  %b = bf16[16,4]{1,0} parameter(1)
  %start = bf16[8,4]{1,0:T(8,128)(2,1)} all-reduce-start(%a), channel_id=1, replica_groups=[4,2]<=[2,4]T(1,0), \
to_apply=%add, metadata={op_name="jit(f)/psum" stack_frame_id=1}
  %gather = (bf16[8,4]{1,0}, /*index=1*/bf16[16,4]{1,0:T(8,128)}) all-gather-start(%a), channel_id=2, \
replica_groups={{0,4},{1,5},{2,6},{3,7}}, dimensions={0}
  %send = (bf16[8,4]{1,0}, bf16[8,4]{1,0}, u32[], u32[]) collective-permute-start(%a), channel_id=4, \
source_target_pairs={{0,1},{1,2},{2,3},{3,0}}
  %received = bf16[8,4]{1,0} collective-permute-done(%send)
  %reduced = bf16[8,4]{1,0} all-reduce-done(%start)
  %gathered = bf16[16,4]{1,0} all-gather-done(%gather)
  %begun = ((bf16[16,4]{1,0}), bf16[2,4]{1,0}, u32[]) async-start(%b), calls=%scatter
  %done = bf16[2,4]{1,0} async-done(%begun)
  ROOT %out = (bf16[8,4]{1,0}, bf16[16,4]{1,0}, bf16[2,4]{1,0}) tuple(%reduced, %gathered, %done)
}
"""


def test_begun_and_ended_apart_counts_once(mesh: Any) -> None:
    found = collectives(ASYNC, mesh)
    assert [(x.kind, x.axes, x.times, x.nbytes) for x in found] == [
        ("reduce-scatter", ("data", "model"), 1, 16),
        ("all-reduce", ("data",), 1, 64),
        ("all-gather", ("data",), 1, 128),
        ("collective-permute", ("model",), 1, 64),
    ]
    assert (found[1].line, found[1].op_name, found[1].reduction) == ("step.py:7", "jit(f)/psum", "add")
    assert found[2].types == ("bf16[16,4]",) and found[2].line == ""


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("{{0,1},{2,3}}", [[0, 1], [2, 3]]),
        ("{}", [[0, 1, 2, 3]]),
        ("[2,2]<=[4]", [[0, 1], [2, 3]]),
        ("[2,2]<=[2,2]T(1,0)", [[0, 2], [1, 3]]),
        ("mesh['data'=2,'model'=2] {'data'}", [[0, 2], [1, 3]]),
        ("mesh['a'=2,'b'=1,'c'=2] {'a','c'}", [[0, 1, 2, 3]]),
        ("mesh['a'=4] {'a':(1)2}", None),
        ("{{0,1},{2}}", None),
        ("who knows", None),
    ],
)
def test_groups_of_devices(text: str, wanted: Any) -> None:
    found = text_of.device_groups(f"all-reduce(%x), replica_groups={text}, to_apply=%add", 4)
    assert (None if found is None else found.tolist()) == wanted


# -- from the command line -----------------------------------------------------------------------------------------

STEP = """
import numpy as np
import corejax
from corejax import NamedSharding, P
from corejax.experimental import topologies

mesh = topologies.make_mesh(topologies.get_topology_desc("2x4"), (2, 4), ("data", "model"))
rows = NamedSharding(mesh, P("data"))
step = corejax.jit(lambda w, x: corejax.numpy.mean(x @ w), in_shardings=(NamedSharding(mesh, P()), rows))
"""


def test_the_command_lists_them(tmp_path: Path) -> None:
    (tmp_path / "step.py").write_text(STEP)
    done = CliRunner().invoke(
        main, ["hlo", f"{tmp_path}/step.py:step", "--args", "f32[4,4], f32[8,4]", "--collectives"]
    )
    assert done.exit_code == 0, done.output
    assert "all-reduce" in done.output and "data" in done.output and "step.py:9" in done.output
    done = CliRunner().invoke(main, ["hlo", "corejax.numpy:sin", "--args", "f32[3]", "--collectives"])
    assert done.output == "no collectives\n"
