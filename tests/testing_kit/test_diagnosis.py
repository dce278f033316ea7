"""What the kit says is probably wrong, and how small it makes what fails."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import corejax.numpy as jnp
from corejax.extend import Example, Primitive, ShapedArray, xla_translations
from corejax_testing import verify
from corejax_testing.diagnosis import ADVICE, diagnose, ratio
from tests.testing_kit import test_mutations as mutations
from tests.testing_kit.toys import EXAMPLES, RIGHT, toy

RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 2.0, (3, 4)).astype(np.float32)
Z = X + 1j * np.float32(0.3)


@pytest.mark.parametrize(
    ("got", "words"),
    [
        (-X, "everywhere -1 times what is right: a sign"),
        (2 * X, "everywhere 2 times what is right: a factor"),
        (-X / 2, "everywhere -1/2 times"),
        (X * 2 / 3, "everywhere 2/3 times"),
        (X * np.float32(math.pi), "everywhere pi times"),
        (X / np.float32(math.sqrt(2)), "everywhere 1/(sqrt(2)) times"),
        (X * np.float32(1.2345), "everywhere 1.2345 times"),
        (np.zeros_like(X), "it is zero: a term is missing"),
        (X[::-1], "reversed along axis 0"),
        (X[:, ::-1], "reversed along axis 1"),
        (np.roll(X, 1, 1), "shifted by one along axis 1"),
        (X.T, "its axes are in another order"),
        (X[..., None], "too many or too few axes of size 1"),
        (X.sum(0), "it lacks an axis"),
        (np.stack([X, X]), "it has too many axes"),
        (X[:2], "an axis has another size"),
        (X.astype(np.float64), "convert it to float32"),
        (np.where(np.arange(12).reshape(3, 4) == 5, 0, X), "only some elements differ: a boundary"),
        (np.where(np.arange(12).reshape(3, 4) > 5, -X, X), "and there it is -1 times"),
        (np.where(X[0, 0] == X, np.nan, X), "finite in only one of the two"),
        (np.sin(3 * X), ""),
    ],
)
def test_what_is_wrong(got: Any, words: str) -> None:
    said = diagnose(np.asarray(got, got.dtype if got.dtype == np.float64 else np.float32), X)
    assert (words in said) if words else said == ""


def test_square_matrices_and_complex_numbers() -> None:
    square = RNG.uniform(size=(3, 3))
    assert "(order (1, 0) is right)" in diagnose(square.T, square)
    assert "complex conjugate" in diagnose(np.conj(Z), Z)
    assert "a conjugate, or a factor of i" in diagnose(1j * Z, Z)
    assert "zero is right" in diagnose(X, np.zeros_like(X))
    assert "negation" in diagnose(X < 1, X >= 1)
    assert diagnose(np.zeros(0), np.zeros(0)) == ""


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [(-3.5, 3.5, "a sign"), (7.0, 3.5, "it is 2 times"), (0.0, 3.5, "it is zero"), (np.nan, 1.0, "not finite"),
     (1.2345, 1.0, "")],
)  # fmt: skip
def test_inner_products(a: float, b: float, words: str) -> None:
    assert (words in ratio(a, b)) if words else ratio(a, b) == ""


def test_there_is_advice_for_every_kind_of_rule() -> None:
    assert set(ADVICE) >= {kind for rules in RIGHT.values() for kind in rules}


def _failing(name: str, kind: str, mistake: str, check: str, examples: list[Example] | None = None) -> Any:
    with toy(name, {kind: mutations.KINDS[kind][mistake][1]}) as primitive:
        (result,) = verify(primitive, examples or EXAMPLES[name], checks=[check])
    assert result.failed
    return result


def test_transpose_of_the_wrong_sign_is_called_that() -> None:
    report = _failing("toy.mulsin", "transpose", "wrong sign", "transpose").report()
    assert "perhaps: it is -1 times what is right: a sign" in report


def test_operand_with_the_wrong_term_is_named() -> None:
    result = _failing("toy.mulsin", "jvp", "dropped term", "jvp")
    assert "of operand 1 alone" in result.message
    assert "a term is missing" in result.hint


def test_failures_are_made_small() -> None:
    big = [Example((ShapedArray((4, 5, 6), np.dtype(np.float32)),) * 2)]
    result = _failing("toy.mulsin", "jvp", "missing factor", "jvp", big)
    assert "operand 0: float32[1] [2.]" in result.call, result.call
    assert "operand 1: float32[1] [1.]" in result.call


def test_numbers_stay_in_the_example_s_range() -> None:
    away = [Example((ShapedArray((3,), np.dtype(np.float32)),) * 2, low=(5.2, 0.1), high=(5.8, 0.9))]
    call = _failing("toy.mulsin", "jvp", "missing factor", "jvp", away).call
    (first,) = [float(line.partition("[1] [")[2].rstrip("]")) for line in call.splitlines() if "operand 0" in line]
    assert 5.2 <= first <= 5.8


def test_operands_that_the_author_gave_stay() -> None:
    x = np.float32([1.25, 0.75])
    result = _failing("toy.mulsin", "jvp", "wrong sign", "jvp", [Example((x, x))])
    assert "operand 0: float32[2] [1.25, 0.75]" in result.call


def test_where_a_rule_is_wrong_by_itself_checks_of_several_rules_say_so() -> None:
    def wrong(primals: Any, tangents: Any) -> Any:
        out, tangent = RIGHT["toy.mulsin"]["jvp"](primals, tangents)
        return out, 2 * tangent

    with toy("toy.mulsin", {"jvp": wrong}) as primitive:
        results = {r.check: r for r in verify(primitive, EXAMPLES["toy.mulsin"], checks=["jvp", "pairs"], quick=True)}
    assert results["jvp"].failed and results["pairs"].failed
    assert results["pairs"].rule == "jvp"
    assert results["pairs"].hint == "the check `jvp` fails by itself: fix it first"


def test_a_reference_that_fails_is_not_the_rules_fault() -> None:
    def narrow(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        if x.dtype != np.float32:
            raise TypeError("float32 only")
        return x * np.sin(y)

    examples = [Example((ShapedArray((3,), np.dtype(np.float32)),) * 2, reference=narrow)]
    with toy("toy.mulsin") as primitive:
        (result,) = verify(primitive, examples, checks=["values"])
    assert result.failed
    said = result.report()
    assert "values: the example's reference function raises TypeError: float32 only" in said, said
    assert "may compute in another" in said and "look at" not in said


@pytest.mark.usefixtures("nothing_is_left")
def test_a_reference_is_held_to_the_dtype_that_it_computes_in() -> None:
    primitive = Primitive("toy.swish", decomposition=lambda x: x * jnp.tanh(x), tags=("elementwise",))
    with_int8 = [Example([np.int8([2, -3, 5])], reference=lambda x: x * np.tanh(x))]  # np.tanh(int8) is float16
    (right,) = verify(primitive, with_int8, checks=["values"])
    assert not right.failed, right.report()
    (wrong,) = verify(primitive, [Example([np.int8([2, -3, 5])], reference=np.tanh)], checks=["values"])
    assert wrong.failed


def test_last_digits_are_no_factor() -> None:
    assert "only the last digits differ" in diagnose(X.astype(np.float64) * (1 + 1e-8), X.astype(np.float64))
    assert ratio(1.0, 1.0) == ""


def _report_of(check: str, example: Example, **rules: Any) -> str:
    """The report of the check on a primitive with these rules, which fails it."""
    primitive = Primitive("toy.planted", **rules)
    (result,) = [r for r in verify(primitive, [example], checks=["pure", check] if check != "pure" else ["pure"])
                 if r.check == check]  # fmt: skip
    assert result.failed, result
    return result.report()


VECTOR, MATRIX = (ShapedArray(shape, np.dtype(np.float32)) for shape in ((3,), (2, 3)))


@pytest.mark.usefixtures("nothing_is_left")
def test_an_impl_that_keeps_state_is_told_so_and_blamed_for_what_follows() -> None:
    calls: list[int] = []

    def counting(x: np.ndarray) -> np.ndarray:
        calls.append(1)
        return x + x.dtype.type(len(calls))

    rules: dict[str, Any] = {"impl": counting, "abstract_eval": lambda x: x.strip_weak_type()}
    assert "make a counter, a generator's state or a key an operand" in _report_of("pure", Example((VECTOR,)), **rules)


@pytest.mark.usefixtures("nothing_is_left")
def test_checks_that_fail_after_an_impl_with_state_follow_from_it() -> None:
    rng = np.random.default_rng(0)

    def noisy(x: np.ndarray) -> np.ndarray:
        return x + rng.normal(size=x.shape).astype(x.dtype)

    report = _report_of("vmap", Example((VECTOR,)), impl=noisy, abstract_eval=lambda x: x.strip_weak_type(),
                        tags=("elementwise",))  # fmt: skip
    assert "the check `pure` fails by itself: fix it first" in report, report


@pytest.mark.usefixtures("nothing_is_left")
def test_an_impl_that_prints_is_found() -> None:
    def printing(x: np.ndarray) -> np.ndarray:
        print("here")
        return x

    report = _report_of("pure", Example((VECTOR,)), impl=printing, abstract_eval=lambda x: x.strip_weak_type())
    assert "impl prints 'here" in report and "declare `effects=`" in report


@pytest.mark.usefixtures("nothing_is_left")
def test_a_batch_at_another_axis_than_the_rule_returns_is_named() -> None:
    def wrong_at_axis_1(axis_size: int, vals: Any, dims: Any) -> Any:
        (x,), (dim,) = vals, dims
        square = dim is not None and x.shape[0] == x.shape[dim]  # otherwise the kernel notices
        return (jnp.cumsum(x, 0, x.dtype), 0 if square else dim) if dim else (jnp.cumsum(x, 1, x.dtype), 0)

    report = _report_of("vmap", Example((MATRIX,)), impl=lambda x: np.cumsum(x, 0, x.dtype), vmap=wrong_at_axis_1,
                        abstract_eval=lambda x: x.strip_weak_type())  # fmt: skip
    assert "in_axes=(" in report and "the batch of result 0 is at another axis than the rule returns" in report


@pytest.mark.usefixtures("nothing_is_left")
def test_scalars_of_elementwise_primitives_are_named() -> None:
    report = _report_of("types", Example((VECTOR, VECTOR)), impl=np.add, abstract_eval=lambda x, y: x.strip_weak_type(),
                        tags=("elementwise",))  # fmt: skip
    assert "an elementwise primitive takes scalars beside arrays" in report, report


@pytest.mark.usefixtures("nothing_is_left")
def test_without_a_reference_impl_may_be_what_is_wrong() -> None:
    def translation(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
        return ctx.op("tanh", *in_vals, out=in_avals[0])

    rules: dict[str, Any] = {"impl": lambda x: np.tanh(2 * x), "abstract_eval": lambda x: x.strip_weak_type()}
    primitive = Primitive("toy.twisted", **rules)
    xla_translations.register(primitive, translation)
    (result,) = verify(primitive, [Example((VECTOR,))], checks=["xla"])
    assert "or impl is wrong (" in result.hint and "`reference=` of the example would tell" in result.hint
    (result,) = verify(primitive, [Example((VECTOR,), reference=lambda x: np.tanh(2 * x))], checks=["xla"])
    assert result.failed and "or impl is wrong" not in result.hint
    (result,) = verify(primitive, [Example((VECTOR,), reference=np.tanh)], checks=["values"])
    assert result.hint.startswith("impl or the example's reference function is wrong"), result.hint
