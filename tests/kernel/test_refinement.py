"""Refinements of types, by one that names dimensions: what the kernel asks of a plugin, without corejax-parallel."""

from __future__ import annotations

import copy
import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest

import corejax as cj
from corejax.errors import JaxprSyntaxError
from corejax.extend import Primitive, ShapedArray, stage_closed
from corejax.extend.transforms import mapped_aval, unmapped_aval
from corejax.extend.types import Refinement, conform, join_refinements
from corejax.ir.values import refinement_reader
from tests.kernel.toys import mul, sin, sum_

pytestmark = pytest.mark.usefixtures("toys")


class Labels(NamedTuple):
    """Names of dimensions, and a unit that arrays of any shape may have."""

    names: tuple[str, ...]
    unit: str = ""

    @property
    def of_any_shape(self) -> Refinement | None:
        return Labels((), self.unit) if self.unit else None

    def of_results(self, primitive: Any, avals: Any, outs: Any, params: Any) -> tuple[ShapedArray, ...]:
        if primitive.name.startswith("tests.labelled"):
            return tuple(outs)
        return tuple(out.refined(self if out.ndim == len(self.names) else self.of_any_shape) for out in outs)

    def conform(self, x: Any, aval: ShapedArray, *, cotangent: bool) -> Any:
        wanted = aval.refinement
        return x if wanted is None else labelled(x, wanted, "total" if cotangent else "")

    def join(self, other: Labels) -> Labels:
        return Labels(self.names or other.names, self.unit or other.unit)

    def without_axis(self, dim: int) -> tuple[Labels, tuple[str, ...]]:
        return Labels(self.names[:dim] + self.names[dim + 1 :], self.unit), (self.names[dim],)

    def with_axis(self, dim: int, names: tuple[str, ...]) -> Labels:
        return Labels((*self.names[:dim], *(names or ("batch",)), *self.names[dim:]), self.unit)

    def text(self, shape: Any) -> str:
        sizes = ",".join(f"{n}@{name}" for n, name in zip(shape, self.names, strict=True))
        return f"[{sizes}]" + (f"{{U:{self.unit}}}" if self.unit else "")


def read(text: str, earlier: Any) -> Labels:
    sizes, _, unit = text[1:].rstrip("}").partition("]")
    if "nonsense" in sizes:
        raise ValueError("nonsense is no label")
    return Labels(tuple(size.partition("@")[2] for size in sizes.split(",")), unit.removeprefix("{U:"))


AVAL = ShapedArray((2, 3), "float32")
ROWS = AVAL.refined(Labels(("row", "column"), "m"))


@pytest.fixture
def labelled_p(request: pytest.FixtureRequest) -> Any:
    global labelled
    p = Primitive(
        f"tests.labelled of {request.node.name}",
        abstract_eval=lambda x, labels, how: x.refined(labels),
        impl=lambda x, labels, how: x,
        jvp=lambda primals, tangents, **params: (p.bind(*primals, **params), p.bind(*tangents, **params)),
        transpose=lambda ct, x, **params: [ct],
        vmap=lambda size, vals, dims, labels, how: (
            p.bind(vals[0], labels=labels.with_axis(dims[0], ()), how=how),
            dims[0],
        ),
        linear_in=(0,),
    )

    def labelled(x: Any, labels: Any, how: str = "") -> Any:
        return p.bind(x, labels=labels, how=how)

    return p


labelled: Any = None


def test_types_of_one_refinement_are_one_object():
    assert ROWS is AVAL.refined(Labels(("row", "column"), "m")) and ROWS is not AVAL
    assert ROWS.refined(None) is AVAL and AVAL.refined(None) is AVAL
    for same in (pickle.loads(pickle.dumps(ROWS)), copy.deepcopy(ROWS), ROWS.update(dtype="float32")):
        assert same is ROWS
    assert ROWS.update(dtype="int32").refinement == ROWS.refinement
    assert ROWS.update(shape=(6,)).refinement == Labels((), "m")
    assert AVAL.refined(Labels(("row", "column"))).update(shape=(6,)) is ShapedArray((6,), "float32")
    assert (ROWS.vma, ROWS.sharding) == (frozenset(), None)


def test_the_refinement_is_in_the_text():
    assert ROWS.str_short() == "f32[2@row,3@column]{U:m}"
    assert repr(ROWS) == "ShapedArray(float32[2@row,3@column]{U:m})"
    assert str(ROWS) == "float32[2@row,3@column]{U:m}"


def test_results_are_refined_when_an_operand_is(labelled_p: Any):
    def f(x: Any) -> Any:
        return mul(sin(labelled(x, ROWS.refinement)), x)

    program = cj.make_jaxpr(f)(AVAL)
    assert [v.aval for eqn in program.eqns for v in eqn.outvars] == [ROWS] * 3


def test_elements_and_batches():
    assert mapped_aval(ROWS, 0).str_short() == "f32[3@column]{U:m}"
    assert unmapped_aval(4, 1, ROWS).str_short() == "f32[2@row,4@batch,3@column]{U:m}"
    assert join_refinements(None, ROWS.refinement) is join_refinements(ROWS.refinement, None) is ROWS.refinement
    assert join_refinements(Labels((), "s"), ROWS.refinement) == Labels(("row", "column"), "s")


def test_vmap_names_the_axis_by_its_operand():
    seen = []

    def f(x: Any) -> Any:
        seen.append(unmapped_aval(2, 0, x.aval).str_short())
        return sin(x)

    program = stage_closed(lambda x: [cj.vmap(f)(x)], [ROWS])
    assert seen == ["f32[2@batch,3@column]{U:m}"] and program.out_avals == [ROWS]


def test_tangents_and_cotangents_conform(labelled_p: Any):
    x = labelled(np.zeros((2, 3), np.float32), ROWS.refinement)
    assert conform(x, x.aval) is x
    ones = np.ones((2, 3), np.float32)

    def how(program: Any) -> list[str]:
        return [eqn.params["how"] for eqn in program.eqns if eqn.primitive is labelled_p]

    pushed = stage_closed(lambda x: cj.jvp(sin, (x,), (ones,)), [ROWS])
    assert pushed.out_avals == [ROWS, ROWS] and how(pushed) == [""]

    def sum_of_labelled(x: Any) -> Any:
        return sum_(labelled(x, ROWS.refinement))

    pulled = stage_closed(lambda x: [cj.grad(sum_of_labelled)(x)], [AVAL])
    assert how(pulled) == ["", "total", "total"]


def test_programs_are_read_back(monkeypatch: pytest.MonkeyPatch):
    parse_jaxpr = pytest.importorskip("corejax_explain.program_text").parse_jaxpr
    program = stage_closed(lambda x: [sin(x)], [ROWS])
    monkeypatch.setattr(refinement_reader, "value", read)
    assert "b:f32[2@row,3@column]{U:m} = toy.sin a" in str(program)
    assert str(parse_jaxpr(str(program))) == str(program)
    with pytest.raises(JaxprSyntaxError, match="line 1, column 14: nonsense is no label"):
        parse_jaxpr("{ lambda ; a:f32[2@nonsense]. let in (a,) }")
    monkeypatch.setattr(refinement_reader, "value", None)
    with pytest.raises(JaxprSyntaxError, match="needs a plugin that refines types, such as corejax-parallel"):
        parse_jaxpr(str(program))
