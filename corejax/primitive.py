"""`Primitive` and `bind`: the operations that interpreters give meaning to."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from corejax import dtypes, source_info
from corejax.attribution import attribute_to_rule
from corejax.avals import ShapedArray
from corejax.caches import clears_cache
from corejax.errors import PluginMissingError
from corejax.memory_limit import LARGE
from corejax.provenance import Provenance
from corejax.rules import (
    abstract_eval_rules,
    impl_rules,
    jvp_rules,
    load_rules,
    physical_rules,
    problems,
    registries,
    transpose_rules,
    vmap_rules,
    whose_primitive,
)
from corejax.run_rule import mismatch
from corejax.seams import Signal
from corejax.tables import Entry, Table
from corejax.trace import state

__corejax_registers_for_caller__ = True


def _second(name: str, earlier: Entry, given: Entry) -> str:
    return (
        f"primitive {name!r} exists: it is defined by {earlier.provenance}; {given.provenance} "
        "defines a second one. Choose another name, for example one with your plugin's namespace "
        f"('{given.provenance.package}.{name}')."
    )


primitives: Table[str, Primitive] = Table("primitive", refusal=_second)

_made: weakref.WeakSet[Primitive] = weakref.WeakSet()  # those that are in no table any more, too

_MEMO_LIMIT = 8192  # entries of one primitive's abstract-eval memo before it is dropped


class Primitive:
    """An operation that interpreters give meaning to; complete when built, then frozen.

    Array data is always positional, `params` are static and hashable.

    Args:
        name: unique among primitives; it is what jaxprs print. A dotted name carries its plugin's namespace.
        multiple_results: whether `bind` gives a list of values rather than one.
        effects: names of what an application does beyond its outputs; such equations survive dce.
            A name that starts with `ordered:` is ordered.
        linear_in: positions of the operands in which the primitive is linear.
        tags: free words that transformations and tools consult ("elementwise", "linear", "higher_order"; "structural":
            it moves elements, whatever their dtype is; "exact": nothing is rounded, all rules give the same bits;
            "reduction": over axes; "cheap": it takes less time than reading what it gave;
            "placing": its abstract-eval rule says where the result is).
        decomposition: the primitive in terms of others, `f(*args, **params) -> out`; every rule is derived from it.
        impl, abstract_eval, jvp, vmap, transpose: rules, as if registered one by one.
        doc: what it computes; by default the docstring of the decomposition or impl.

    Raises:
        DuplicateRegistrationError: another owner has a primitive of that name.
        TypeError: the name is not a non-empty string, or a rule is not callable.
    """

    __slots__ = (
        "__weakref__",
        "_memo",
        "decomposition",
        "doc",
        "effects",
        "linear_in",
        "multiple_results",
        "name",
        "provenance",
        "tags",
    )

    name: str
    multiple_results: bool
    effects: frozenset[str]
    linear_in: tuple[int, ...]
    tags: frozenset[str]
    decomposition: Callable[..., Any] | None
    provenance: Provenance
    doc: str
    _memo: dict[Any, tuple[ShapedArray, ...]]

    def __init__(
        self,
        name: str,
        *,
        multiple_results: bool = False,
        effects: Iterable[str] = (),
        linear_in: Iterable[int] = (),
        tags: Iterable[str] = (),
        decomposition: Callable[..., Any] | None = None,
        impl: Callable[..., Any] | None = None,
        abstract_eval: Callable[..., Any] | None = None,
        jvp: Callable[..., Any] | None = None,
        vmap: Callable[..., Any] | None = None,
        transpose: Callable[..., Any] | None = None,
        doc: str | None = None,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise TypeError(f"a primitive's name is a non-empty string, got {name!r}")
        if isinstance(effects, str) or isinstance(tags, str):
            raise TypeError(f"primitive {name!r}: effects and tags are collections of strings, not one string")
        effects, tags = tuple(effects), tuple(tags)
        for word in (*effects, *tags):
            if not isinstance(word, str):
                raise TypeError(f"primitive {name!r}: effects and tags are strings, got {word!r}")
        if doc is None:
            doc = (getattr(decomposition or impl, "__doc__", None) or "") if decomposition or callable(impl) else ""
        fields: dict[str, Any] = {
            "name": name,
            "multiple_results": bool(multiple_results),
            "effects": frozenset(effects),
            "linear_in": _positions(name, linear_in),
            "tags": frozenset(tags),
            "decomposition": decomposition,
            "provenance": Provenance.of_caller(),
            "doc": doc,
            "_memo": {},
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)
        primitives.register(name, self, provenance=self.provenance)
        _made.add(self)
        given = ((impl_rules, impl), (abstract_eval_rules, abstract_eval), (jvp_rules, jvp), (vmap_rules, vmap))
        for registry, rule in (*given, (transpose_rules, transpose)):
            if rule is not None:
                registry.register(self, rule)

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the primitive: the trace on top of the stack interprets it.

        Returns:
            One value, or a list where `multiple_results`.

        Raises:
            MissingRuleError: an interpreter finds no rule for the primitive.
            TypeError: an operand is not an array, or the operands' types do not fit.
        """
        try:
            out = state.trace.process_primitive(self, args, params)
        except Exception as error:
            if not any(hasattr(type(x), "__corejax_array__") for x in args):
                attribute_to_rule(error, self)
                raise
        else:
            return out if self.multiple_results else out[0]
        # Interpreters look for their own tracers, not for what stands for one.
        values = [x.__corejax_array__() if hasattr(type(x), "__corejax_array__") else x for x in args]
        return self.bind(*values, **params)

    def abstract(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> tuple[ShapedArray, ...]:
        """Avals of the outputs, memoised on (avals, params).

        Raises:
            TypeError: a param is not hashable, or what the abstract-eval rule raises.
        """
        try:
            key = (avals, tuple(params.items())) if params else avals
            found = self._memo.get(key)
        except TypeError:
            raise self._unhashable(params) from None
        return found if found is not None else self._abstract_miss(key, avals, params)

    def _abstract_miss(
        self, key: Any, avals: tuple[ShapedArray, ...], params: dict[str, Any]
    ) -> tuple[ShapedArray, ...]:
        rule = abstract_eval_rules.lookup(self)
        if dtypes.has_extended():
            self._refuse_extended(avals)
        try:
            out = rule(*avals, **params)
        except TypeError as error:
            attribute_to_rule(error, self, kind="abstract_eval")
            raise
        except OverflowError as error:  # a result that no machine holds
            raise OverflowError(f"primitive {self.name!r} at {source_info.user_line()}: {error}") from None
        several = self.multiple_results and isinstance(out, Iterable)
        outs = tuple(out) if several else (out,)
        if several is not self.multiple_results or not all(isinstance(aval, ShapedArray) for aval in outs):
            raise self._no_types(out)
        if dtypes.has_extended() and not any(aval.dtype.names for aval in avals):
            self._refuse_extended(outs)
        refinement = next((aval.refinement for aval in avals if aval.refinement is not None), None)
        if refinement is not None:
            outs = refinement.of_results(self, avals, outs, params)
        # Who evaluates looks at the sizes of what is not in the memo.
        large = any(aval.nbytes > LARGE for aval in outs)
        if not large and "higher_order" not in self.tags and not _holds_function(params.values()):
            if len(self._memo) >= _MEMO_LIMIT:
                self._memo.clear()
            self._memo[key] = outs
        return outs

    def _no_types(self, out: Any) -> TypeError:
        """The error for an abstract-eval rule that gives no types."""
        from corejax.texts import described, one_line  # needed for an error only

        text = f"a {type(out).__name__} of {len(out)}" if isinstance(out, list | tuple) else ""
        wrong = [x for x in (out if text else [out]) if not isinstance(x, ShapedArray) or x is out][:1]
        for x in wrong:
            kind = "None" if x is None else f"{one_line(described(x))} of type {type(x).__name__}"
            text = f"{text}, one of them {kind}," if text else kind
        wanted = "a list of types (ShapedArray), one for each result" if self.multiple_results else "one ShapedArray"
        return mismatch(abstract_eval_rules, self, f"{text} where it has to give {wanted}")

    def _refuse_extended(self, avals: Sequence[ShapedArray]) -> None:
        """Elements that are not numbers are for who moves them, and for who says what he does with them."""
        found = next((aval.dtype for aval in avals if aval.dtype.names is not None), None)
        if found is None or self.decomposition is not None or self in physical_rules:
            return
        if self.tags.isdisjoint(("structural", "higher_order")):
            raise dtypes.no_numbers(found, f"primitive {self.name!r}")

    def _unhashable(self, params: dict[str, Any]) -> TypeError:
        from corejax.trace import Tracer

        for name, value in params.items():
            try:
                hash(value)
            except TypeError:
                what = "a traced value" if isinstance(value, Tracer) else f"{value!r} of type {type(value).__name__}"
                return TypeError(
                    f"parameter {name!r} of primitive {self.name!r} has to be static and hashable, got {what} "
                    f"at {source_info.user_line()}. Pass array data as an operand; use tuples instead of lists."
                )
        return TypeError(f"parameters of primitive {self.name!r} are not hashable: {params!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"primitive {self.name!r} is frozen: set {name!r} when it is built, and give it rules in the registries"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (_by_name, (self.name, self.provenance.distribution, self.provenance.version))

    def __copy__(self) -> Primitive:
        return self

    def __deepcopy__(self, memo: Any) -> Primitive:
        return self

    def __repr__(self) -> str:
        return f"Primitive({self.name!r})"


def _holds_function(values: Iterable[Any]) -> bool:
    """Whether functions, or objects that equal nothing else, are among parameters: a memo must not keep them alive.

    Programs are parameters of higher-order primitives, which have no memo at all.
    """
    for value in values:
        if isinstance(value, tuple):
            if _holds_function(value):
                return True
        elif (callable(value) and not isinstance(value, type)) or getattr(
            type(value), "__hash__", None
        ) is object.__hash__:
            return True
    return False


def _positions(name: str, linear_in: Any) -> tuple[int, ...]:
    try:
        found = tuple(linear_in)
    except TypeError:
        found = (None,)
    if not all(type(i) is int and i >= 0 for i in found):
        raise TypeError(f"primitive {name!r}: linear_in is a tuple of operands' positions from 0, got {linear_in!r}")
    return found


def _by_name(name: str, distribution: str | None = None, version: str | None = None) -> Primitive:
    """The primitive that was pickled.

    Raises:
        PluginMissingError: it does not exist here; with the distribution that it was from.
    """
    if name not in primitives:
        load_rules("primitives")
    if name in primitives:
        return primitives[name]
    home = "a module that is not imported here"
    if distribution is not None:
        whose = whose_primitive(name, distribution)
        pin = f"=={version}" if version else ""
        advice = f"pip install {distribution}{pin}" if "pip install" in whose else whose
        home = f"{distribution} {version or ''}".rstrip() + f" ({advice})"
    notes = "".join(f"; note: {problem}" for problem in problems("primitives"))
    raise PluginMissingError(f"there is no primitive {name!r}: what is unpickled was made with {home}{notes}")


def promised(
    primitive: Primitive, avals: tuple[ShapedArray, ...], params: dict[str, Any]
) -> tuple[ShapedArray, ...] | None:
    """As `Primitive.abstract`; None where nobody gave an abstract-eval rule and none can be derived."""
    try:
        found = primitive._memo.get((avals, tuple(params.items())) if params else avals)
    except TypeError:  # a parameter that has no hash
        found = None
    if found is not None:
        return found
    if primitive in abstract_eval_rules.table or abstract_eval_rules.find(primitive) is not None:
        return primitive.abstract(avals, params)
    return None


def find_primitive(name: str) -> Primitive | None:
    """The primitive of that name, of whatever plugin, or None where none that is installed has one.

    For rules of a plugin's own kind for other plugins' primitives: plugins are loaded only if the name is not there.
    """
    found = primitives.get(name)
    if found is None and load_rules("primitives"):
        found = primitives.get(name)
    return found


def flat_decomposition(primitive: Primitive) -> Callable[..., list[Any]] | None:
    """The primitive's decomposition as a function `(*args, **params)` to a list of outputs; None without one.

    What a `Derivation` of rules from decompositions runs: under the interpreter that the rule is for, it binds
    primitives that have rules.
    """
    body = primitive.decomposition
    if body is None:
        return None

    def flat(*args: Any, **params: Any) -> list[Any]:
        return results_of_body(primitive, body(*args, **params))

    return flat


def results_of_body(primitive: Primitive, out: Any) -> list[Any]:
    """What a decomposition gave, as a list.

    Raises:
        TypeError: it gives a sequence for one result, or no sequence for several, or nothing.
    """
    sequence = isinstance(out, list | tuple)
    if out is None or sequence is not primitive.multiple_results:
        kind = "nothing (None)" if out is None else f"a {type(out).__name__} of {len(out)}" if sequence else "one value"
        wanted = "a sequence of results" if primitive.multiple_results else "one result"
        advice = " A primitive with several is built with multiple_results=True." if sequence else ""
        raise TypeError(
            f"the decomposition of primitive {primitive.name!r}, from {primitive.provenance}, gives {kind} where it "
            f"has to give {wanted}.{advice}"
        )
    return list(out) if sequence else [out]


types_changed = Signal("abstract-eval rules")


def _forget_avals(primitive: Primitive) -> None:
    primitive._memo.clear()
    types_changed.send()


abstract_eval_rules.changed.connect(_forget_avals)


@clears_cache
def _forget_all_avals() -> None:
    for primitive in list(_made):
        primitive._memo.clear()


__all__ = ["Primitive", "find_primitive", "flat_decomposition", "primitives", "registries"]
