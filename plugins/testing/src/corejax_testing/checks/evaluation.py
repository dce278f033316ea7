"""Check impl and abstract eval: types, weak types, values, purity."""

from __future__ import annotations

import io
import itertools
from contextlib import redirect_stdout, suppress
from functools import partial

import numpy as np

from corejax.extend import ShapedArray, abstract_eval_rules, as_array, flat_decomposition, get_aval, impl_rules
from corejax_testing.arrays import Array, compare, compare_each, is_inexact, on_host
from corejax_testing.calls import Call, host
from corejax_testing.checks.registry import at_fault, check, place_of
from corejax_testing.diagnosis import diagnose
from corejax_testing.outcomes import CheckFailure, NotApplicable, hinting


def raw_impl(call: Call) -> list[Array]:
    """Return the results of the impl rule itself, before the kernel checks and wraps them.

    Raises:
        NotApplicable: the impl rule works on device arrays, or the kernel derives it.
    """
    call.require_alone()
    impl_rules.lookup(call.primitive)
    rule = impl_rules.rule_of(call.primitive)
    if rule is None or rule.flags.get("device") or "by" in rule.flags or rule.derived is not None:
        raise NotApplicable("no impl rule on NumPy arrays")
    with np.errstate(all="ignore"), at_fault("impl"):
        out = rule.fn(*call.values, **call.params)
    return list(out) if call.primitive.multiple_results else [out]


@check("types", "abstract_eval", dtypes=True, shapes=True)
def check_types(call: Call, rng: np.random.Generator) -> None:
    """Check that results have the types that abstract eval returns, and that a prepared impl computes the same."""
    avals = call.avals_out
    with suppress(NotApplicable):
        _check_impl(call)
        _check_prepared(call)
    for i, (out, aval) in enumerate(zip(call(*call.values), avals, strict=True)):
        got = get_aval(out)
        if got is not aval:
            raise CheckFailure(
                f"result {i} is of type {got.str_short()}, but abstract eval returns {aval.str_short()}", "impl"
            )
        if aval.weak_type and not call.params.get("weak_type") and _has_own_abstract_eval(call):
            raise CheckFailure(f"result {i} of strongly typed operands is weakly typed", "abstract_eval",
                               "a result is weakly typed only if all operands are")  # fmt: skip


def _has_own_abstract_eval(call: Call) -> bool:
    """Return whether the author wrote abstract eval; in a decomposition, weak types follow from its operations."""
    abstract_eval_rules.lookup(call.primitive)
    rule = abstract_eval_rules.rule_of(call.primitive)
    return rule is not None and rule.derived is None


def _check_impl(call: Call) -> None:
    outs, avals = raw_impl(call), call.avals_out
    if len(outs) != len(avals):
        raise CheckFailure(
            f"impl returns {len(outs)} results, abstract eval {len(avals)}", "impl", _or_abstract_eval(call)
        )
    for i, (value, aval) in enumerate(zip(outs, avals, strict=True)):
        with at_fault("impl"):
            found = ShapedArray(np.shape(value), on_host(value).dtype)
        if (found.shape, found.dtype) != (aval.shape, aval.dtype):
            hint = diagnose(value, np.broadcast_to(aval.dtype.type(0), aval.shape))
            if "elementwise" in call.primitive.tags and found.shape != aval.shape:
                hint = "an elementwise primitive takes scalars beside arrays: abstract eval refuses them, or broadcasts"
            if _is_of_the_reference(call, i, found):
                raise CheckFailure(
                    f"abstract eval returns {aval.str_short()} for result {i}, but impl and the example's reference "
                    f"return {found.str_short()}", "abstract_eval",
                )  # fmt: skip
            raise CheckFailure(
                f"impl returns {found.str_short()} as result {i}, but abstract eval {aval.str_short()}", "impl",
                f"if abstract eval is right, then impl's result is wrong: {hint}; {_or_abstract_eval(call)}",
            )  # fmt: skip


def _check_prepared(call: Call) -> None:
    """Require the specialised impl (`prepared=`) to return the same results as impl, bit by bit."""
    rule = impl_rules.rule_of(call.primitive)
    prepare = None if rule is None else rule.flags.get("prepared")
    if prepare is None:
        return
    outs = raw_impl(call)
    with np.errstate(all="ignore"), at_fault("impl"):
        run = prepare(list(call.avals), **call.params)
        given = outs if run is None else run(*call.values)
    found = list(given) if run is None or call.primitive.multiple_results else [given]
    for i, (a, b) in enumerate(zip(map(on_host, outs), map(on_host, found), strict=True)):
        if (a.dtype, a.shape, a.tobytes()) != (b.dtype, b.shape, b.tobytes()):
            raise CheckFailure(f"the prepared impl returns {b} as result {i}, but impl itself returns {a}", "impl",
                               "`prepared=` must return the same function, or None")  # fmt: skip


def _is_of_the_reference(call: Call, result: int, found: ShapedArray) -> bool:
    """Return whether the author's reference function returns a result of this type."""
    if call.example.reference is None:
        return False
    try:
        out = call.example.reference(*call.values, **call.params)
    except Exception:  # a reference need not accept these dtypes
        return False
    value = on_host(out[result] if call.primitive.multiple_results else out)
    return (value.shape, value.dtype) == (found.shape, found.dtype)


def _or_abstract_eval(call: Call) -> str:
    return f"if impl is right, fix abstract eval ({place_of(call.primitive, 'abstract_eval')})"


@check("weak_types", "abstract_eval", dtypes=True)
def check_weak_types(call: Call, rng: np.random.Generator) -> None:
    """Check that a result is weakly typed only if the operands that it depends on are weakly typed."""
    if not call.values:
        raise NotApplicable("no operands")
    if not _has_own_abstract_eval(call):
        raise NotApplicable("weak types of a decomposition follow from its operations")
    strong = call.avals
    _check_weak_structural(call)
    for mask in range(1, 2 ** min(len(strong), 4)):
        avals = tuple(a.update(weak_type=bool(mask >> i & 1)) for i, a in enumerate(strong))
        outs = call.types(avals)
        for out, reference in zip(outs, call.avals_out, strict=True):
            shown = ", ".join(a.str_short() for a in avals)
            if (out.shape, out.dtype) != (reference.shape, reference.dtype):
                raise CheckFailure(f"abstract eval of ({shown}) returns {out.str_short()}, but for strong types "
                                   f"{reference.str_short()}", "abstract_eval")  # fmt: skip
            same_kind = [a for a in avals if a.dtype == out.dtype]
            if out.weak_type and same_kind and not any(a.weak_type for a in same_kind):
                raise CheckFailure(f"abstract eval of ({shown}) returns the weak {out.str_short()}", "abstract_eval")
            nary = "elementwise" in call.primitive.tags and out.dtype != np.bool_  # select's predicate does not count
            if out.weak_type and nary and not all(a.weak_type for a in same_kind):
                raise CheckFailure(
                    f"abstract eval of ({shown}) returns the weak {out.str_short()}, though an operand is strong",
                    "abstract_eval",
                )


def _check_weak_structural(call: Call) -> None:
    """Require a result of a structural primitive to be weak exactly if all operands that it copies from are weak."""
    if "structural" not in call.primitive.tags or "weak_type" in call.params:
        return
    sources = _sources(call)
    for flags in itertools.product((False, True), repeat=min(len(call.values), 4)):
        weak = [*flags, *[False] * (len(call.values) - len(flags))]
        avals = tuple(a.update(weak_type=w) for a, w in zip(call.avals, weak, strict=True))
        for out, found in zip(call.types(avals), sources, strict=True):
            alike = [w for a, w in zip(avals, weak, strict=True) if a.dtype == out.dtype]
            # An update in place (the first source has the result's shape) may keep that operand's type.
            updated = bool(found) and weak[found[0]] and avals[found[0]].shape == out.shape
            lost = not out.weak_type and all(alike)
            gained = out.weak_type and not updated and not all(weak[k] for k in found)
            if found and (lost or gained):
                shown = ", ".join(a.str_short() for a in avals)
                raise CheckFailure(
                    f"abstract eval of ({shown}) returns {out.str_short()}, with elements of operands {found}",
                    "abstract_eval", "the result is weakly typed if all its sources are: all(x.weak_type for x in ...)",
                )  # fmt: skip


def _sources(call: Call) -> list[list[int]]:
    """Return, for each result, the operands of its dtype that change the result if they change."""
    found: list[list[int]] = [[] for _ in call.avals_out]
    before = host(call(*call.values))
    for i, x in enumerate(call.values):
        if not is_inexact(x.dtype):
            continue
        try:
            after = host(call(*(y + y.dtype.type(1) if k == i else y for k, y in enumerate(call.values))))
        except NotApplicable:
            continue
        for k, (a, b) in enumerate(zip(before, after, strict=True)):
            if a.dtype == x.dtype and not np.array_equal(a, b, equal_nan=True):
                found[k].append(i)
    return found


@check("values", "impl", dtypes=True, shapes=True, long=True)
def check_values(call: Call, rng: np.random.Generator) -> None:
    """Check that the results are those of the author's reference function, and of the decomposition."""
    decomposed = _check_decomposition(call)
    if call.example.reference is None:
        if decomposed:
            return
        raise NotApplicable("the example has no reference function")
    try:
        with np.errstate(all="ignore"):
            wanted = call.example.reference(*call.values, **call.params)
    except Exception as error:
        raise CheckFailure(
            f"the example's reference function raises {type(error).__name__}: {error}",
            None,
            "it is called as reference(*operands, **params), with operands of every dtype that the rules accept; it "
            "may compute in another dtype: x.astype('float64')",
        ) from error
    listed = list(wanted) if call.primitive.multiple_results else [wanted]
    for i, (got, right) in enumerate(zip(call(*call.values), listed, strict=True)):
        got, right = np.asarray(got), np.asarray(right)
        if right.dtype.kind == got.dtype.kind in "fc" and right.itemsize < got.itemsize:
            got = got.astype(right.dtype)  # NumPy computes functions of int8 in float16
        with hinting(partial(_one_is_wrong, "impl or the example's reference function")):
            compare(got, right.astype(got.dtype), f"result {i}", "impl", scale=call.example.tolerance)


def _one_is_wrong(which: str, failure: CheckFailure) -> str:
    """Return the hint of a failure: one of two computations is wrong."""
    return f"{which} is wrong{': ' if failure.hint else ''}{failure.hint}"


def _check_decomposition(call: Call) -> bool:
    """Compare a written impl with the decomposition; return whether there are both."""
    body, impl = flat_decomposition(call.primitive), impl_rules.rule_of(call.primitive)
    alone = call.example.within is None and not call.primitive.effects
    if body is None or impl is None or impl.derived is not None or "by" in impl.flags or not alone:
        return False
    wanted = host(body(*map(as_array, call.values), **call.params))
    with hinting(partial(_one_is_wrong, "impl or the decomposition")):
        compare_each(host(call(*call.values)), wanted, "result", " of impl, against the decomposition,", "impl",
                     scale=call.example.tolerance)  # fmt: skip
    return True


_STATE = (
    "for the same operands impl returns the same numbers: make a counter, a generator's state or a key an operand, or "
    "declare `effects=` of the primitive"
)


@check("pure", "impl", dtypes=True, shapes=True)
def check_pure(call: Call, rng: np.random.Generator) -> None:
    """Check that impl depends on its operands' numbers alone, not on memory or earlier calls, and prints nothing."""
    with redirect_stdout(io.StringIO()) as printed:
        raw_impl(call)  # raises NotApplicable if there is no impl on NumPy arrays
    if printed.getvalue() and not call.primitive.effects:
        hint = "transformations call impl any number of times, or never: declare `effects=` of the primitive"
        raise CheckFailure(f"impl prints {printed.getvalue()[:40]!r}", "impl", hint)
    mine = call.at([x.copy() for x in call.values])
    first = host(raw_impl(mine))
    for i, (x, before) in enumerate(zip(mine.values, call.values, strict=True)):
        if x.tobytes() != before.tobytes():
            raise CheckFailure(f"impl changes operand {i} in place", "impl")
    kept = [x.copy() for x in first]
    raw_impl(call.again(np.random.default_rng(1)))
    for i, (x, before) in enumerate(zip(first, kept, strict=True)):
        if x.tobytes() != before.tobytes():
            raise CheckFailure(f"result {i} is overwritten by the next application (impl reuses an array)", "impl")
    if call.primitive.effects:
        return  # a primitive with effects may depend on its earlier applications
    for i, (x, y) in enumerate(zip(kept, host(raw_impl(call)), strict=True)):
        try:
            compare(y, x, f"result {i}, the second time,", "impl", allowed=0.0)
        except CheckFailure as failure:
            raise CheckFailure(str(failure), "impl", _STATE) from None
    if not any(x.ndim and x.size for x in call.values):
        return
    buffers = [x.copy() for x in call.values]
    raw_impl(call.at(buffers))
    other = call.again(np.random.default_rng(2))
    for buffer, x in zip(buffers, other.values, strict=True):
        buffer[...] = x
    for what, there in (
        ("of an array that had other numbers", buffers),
        ("of an array in Fortran's order", [np.array(x, order="F") for x in other.values]),
        ("of every second element of an array", [_strided(x) for x in other.values]),
    ):
        for i, (x, y) in enumerate(zip(host(raw_impl(call.at(there))), host(raw_impl(other)), strict=True)):
            compare(x, y, f"result {i} {what}", "impl", scale=call.example.tolerance)


def _strided(x: Array) -> Array:
    """Return the same numbers in memory that is not contiguous."""
    if not x.ndim:
        return x
    apart = np.repeat(x, 2, axis=-1)
    apart[..., 1::2] = 0
    return apart[..., ::2]
