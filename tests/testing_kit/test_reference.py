"""StableHLO's interpreter, which may end its process, and the kit, which goes on."""

from __future__ import annotations

import numpy as np
import pytest

from corejax.base.tables import restore, snapshot
from corejax.extend import Example, Primitive, ShapedArray, primitives
from corejax_testing import verify
from corejax_testing.outcomes import NotApplicable
from corejax_testing.reference import Interpreter, operations
from tests.testing_kit.toys import same

F32 = np.dtype(np.float32)
PROGRAM = """module @f {{
  func.func public @main(%arg0: tensor<2x{0}>, %arg1: tensor<2x{0}>) -> (tensor<2x{0}>) {{
    %1 = "{1}"(%arg0, %arg1) {2} : (tensor<2x{0}>, tensor<2x{0}>) -> tensor<2x{0}>
    func.return %1 : tensor<2x{0}>
  }}
}}
"""
CALL = PROGRAM.format("f32", "stablehlo.custom_call", '{call_target_name = "acme_kernel"}')
SUM = PROGRAM.format("f32", "stablehlo.add", "")
QUOTIENT = PROGRAM.format("i32", "stablehlo.divide", "")


@pytest.fixture
def interpreter() -> object:
    made = Interpreter()
    yield made
    made.close()


def test_a_program_that_ends_the_process(interpreter: Interpreter) -> None:
    x = np.float32([1, 2])
    assert interpreter.run(SUM, [x, x])[0].tolist() == [2, 4]
    with pytest.raises(NotApplicable, match="ends its process on the custom call 'acme_kernel'"):
        interpreter.run(CALL, [x, x])
    assert interpreter._child is None
    assert interpreter.run(SUM, [x, x])[0].tolist() == [2, 4]
    child = interpreter._child
    with pytest.raises(NotApplicable, match="ends its process"):
        interpreter.run(CALL, [x, x])  # known by now: nothing is asked
    assert interpreter._child is child


def test_division_by_zero_is_told_from_division(interpreter: Interpreter) -> None:
    one, zero = np.int32([1, 1]), np.int32([1, 0])
    with pytest.raises(NotApplicable, match="ends its process"):
        interpreter.run(QUOTIENT, [one, zero])
    assert interpreter.run(QUOTIENT, [zero, one])[0].tolist() == [1, 0]


def test_text_that_is_no_program_is_an_answer(interpreter: Interpreter) -> None:
    with pytest.raises(NotApplicable, match="does not know the program"):
        interpreter.run("module @f { nonsense }", [])


def test_operations() -> None:
    assert operations(SUM) == {"stablehlo.add"}


def test_primitives_that_become_custom_calls_are_not_failures() -> None:
    """Without a translation XLA calls back to the host: a custom call."""
    before = snapshot()
    try:
        primitive = Primitive("toy.opaque", impl=np.tanh, abstract_eval=same, tags=("elementwise",))
        example = Example((ShapedArray((3,), F32),))
        (result,) = verify(primitive, [example], checks=["stablehlo"])
        (known,) = verify(primitives["sin"], [example], checks=["stablehlo"])
    finally:
        restore(before)
    assert (result.status, known.status) == ("not applicable", "passed")
    assert "ends its process on the custom call" in result.message
