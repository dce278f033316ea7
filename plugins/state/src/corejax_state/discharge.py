"""Primitives on references, and the rules that discharge them.

A primitive on references, such as one step of an optimiser, reads and replaces the values of references. Programs have
no references, so that the primitive is discharged when it is applied: `RefPrimitive.bind` reads the values, applies a
primitive of arrays to them (`RefPrimitive.primitive`), and writes the new values that this primitive returns. The
discharge rule, a pure function, computes the new values. It is the decomposition of the primitive of arrays, so that
all transformations apply, and a plugin can register faster rules for that primitive as for any other one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import Primitive, RuleRegistry, abstract_eval_rules, get_aval, mismatch
from corejax.extend.messages import api_boundary
from corejax_state.indexing import View, in_dtype_of
from corejax_state.reference import Ref

discharge_rules = RuleRegistry(
    "discharge",
    "discharge rule",
    """\
    @discharge_rules.register({var}.primitive)
    def {name}_discharge(*values, **params):
        # values: the operands, and in place of each reference its value
        # new_values: of the references that the primitive writes, in the order of `writes`; out: the result, or None
        return new_values, out""",
    required=False,
)
__corejax_registers_for_caller__ = True  # the provenance of a primitive is the line that makes it


class RefPrimitive:
    """A primitive that is applied to references and arrays.

        push_p = RefPrimitive("acme.push", ("buffer", "end", "x"), writes=("buffer", "end"), discharge=push)
        push_p.bind(buffer, end, 1.0)

    Args:
        name: the name, unique among primitives. A dotted name starts with its plugin's namespace.
        operands: the names of the operands, for messages.
        writes: the operands that are references to which the primitive writes.
        reads: the operands that are references from which it only reads.
        multiple_results: whether `bind` returns a list of results rather than one result or None.
        discharge: the discharge rule, as if registered in `discharge_rules` for the attribute `primitive`.
        doc: what it computes; by default the docstring of the discharge rule.

    Attributes:
        primitive: the primitive of arrays that programs have. Its operands are those of `bind`, with the value of each
            reference, and its results are the new values of `writes`, followed by the results of `bind`.

    Raises:
        DuplicateRegistrationError: another owner has defined a primitive of that name.
        ValueError: `writes` or `reads` has another name than `operands`, a name occurs twice, or no operand is a
            reference.
    """

    def __init__(
        self,
        name: str,
        operands: Sequence[str],
        *,
        writes: Sequence[str] = (),
        reads: Sequence[str] = (),
        multiple_results: bool = False,
        discharge: Callable[..., Any] | None = None,
        doc: str | None = None,
    ) -> None:
        self.operands, self.writes, self.reads = tuple(operands), tuple(writes), tuple(reads)
        self.multiple_results = multiple_results
        references = (*self.writes, *self.reads)
        for names in (self.operands, references):
            if len(names) != len(set(names)):
                raise ValueError(f"primitive {name!r}: {names} has a name twice")
        if not references or not set(references) <= set(self.operands):
            raise ValueError(
                f"primitive {name!r}: writes and reads name the references among the operands {self.operands}, "
                f"got {references}"
            )
        self.primitive = Primitive(
            name,
            multiple_results=True,
            decomposition=self._discharged,
            doc=(discharge.__doc__ or "") if doc is None and discharge is not None else doc or "",
        )
        if discharge is not None:
            discharge_rules.register(self.primitive, discharge)

    @classmethod
    def of(cls, primitive: Primitive) -> RefPrimitive | None:
        """Return the primitive on references that has this attribute `primitive`, or None."""
        owner = getattr(primitive.decomposition, "__self__", None)
        return owner if isinstance(owner, cls) else None

    @property
    def name(self) -> str:
        """The name."""
        return self.primitive.name

    @api_boundary
    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the primitive: write the new values of the references, and return the results.

        Args:
            args: the operands: references or views of them (`ref.at[...]`), and arrays.
            params: static and hashable parameters.

        Returns:
            The result; None if the rule returns no result; a list of results with `multiple_results`.

        Raises:
            MissingRuleError: the primitive has no discharge rule.
            TypeError: the number of operands is wrong, an array is passed for a reference or the reverse, or the
                discharge rule returns a new value of another type.
            ValueError: a reference that is written is passed twice, is frozen, or has escaped from its function; or a
                new value is traced by a transformation inside the function that made the reference.
        """
        refs = self._references(args)
        values = [self._read(name, x) if name in refs else x for name, x in zip(self.operands, args, strict=True)]
        outs = self.primitive.bind(*values, **params)
        count = len(self.writes)
        self._write(refs, outs[:count])
        if self.multiple_results:
            return outs[count:]
        return outs[count] if len(outs) > count else None

    def _references(self, args: Sequence[Any]) -> dict[str, Ref | View]:
        """Return the references among the operands, by name.

        Raises:
            TypeError: the operands are not references and arrays as declared.
            ValueError: a reference is written and passed twice.
        """
        if len(args) != len(self.operands):
            raise TypeError(f"{self.name} takes {len(self.operands)} operands {self.operands}, got {len(args)}")
        refs: dict[str, Ref | View] = {}
        for name, x in zip(self.operands, args, strict=True):
            if isinstance(x, Ref | View):
                refs[name] = x
            if (name in refs) != (name in self.writes or name in self.reads):
                advice = "an array: pass its value, ref[...]" if name in refs else "a reference (corejax.new_ref)"
                raise TypeError(f"{self.name}: argument {name!r} is {_described(x)}, and has to be {advice}")
        for written in self.writes:
            for name, ref in refs.items():
                if name != written and _whole(ref) is _whole(refs[written]):
                    raise ValueError(
                        f"{self.name}: {_whole(ref)!r} is passed twice, as {written!r} and as {name!r}, and the "
                        f"primitive writes {written!r}: pass it once"
                    )
        return refs

    def _write(self, refs: dict[str, Ref | View], values: Sequence[Any]) -> None:
        """Write the new values; check all of them first, so that an error leaves all references unchanged."""
        for name, value in zip(self.writes, values, strict=True):
            try:
                _whole(refs[name]).check_storable(value)
            except ValueError as error:
                raise self._of_operand(name, error) from None
        for name, value in zip(self.writes, values, strict=True):
            refs[name][...] = value

    def _read(self, operand: str, ref: Ref | View) -> Any:
        try:
            return ref[...]
        except ValueError as error:
            raise self._of_operand(operand, error) from None

    def _of_operand(self, operand: str, error: ValueError) -> ValueError:
        """Return the error of a reference with the names of the primitive and the operand."""
        return ValueError(f"{self.name}: argument {operand!r}: {error}")

    def _discharged(self, *values: Any, **params: Any) -> list[Any]:
        """Run the discharge rule; return the new values and the results.

        Raises:
            TypeError: the rule returns new values of other types, or another number of them.
        """
        out = discharge_rules.lookup(self.primitive)(*values, **params)
        if not isinstance(out, list | tuple) or len(out) != 2:
            raise self._mismatch(f"{_described(out)} instead of a pair (new_values, out)")
        news, results = out
        if not isinstance(news, list | tuple) or len(news) != len(self.writes):
            raise self._mismatch(
                f"{_described(news)} as new values: return a tuple with the new value of each reference that the "
                f"primitive writes, {self.writes}; a reference that stays unchanged has its old value"
            )
        if not self.multiple_results:
            results = [] if results is None else [results]
        if not isinstance(results, list | tuple) or any(x is None or isinstance(x, list | tuple) for x in results):
            wanted = "a list of arrays" if self.multiple_results else "an array or None"
            raise self._mismatch(f"{_described(out[1])} as out, instead of {wanted}")
        earlier = dict(zip(self.operands, values, strict=True))
        return [
            *[self._of_type(name, new, earlier[name]) for name, new in zip(self.writes, news, strict=True)],
            *results,
        ]

    def _of_type(self, operand: str, new: Any, earlier: Any) -> Any:
        """Return the new value of a reference; numbers of weak type take the reference's dtype."""
        wanted = get_aval(earlier).strip_weak_type()
        try:
            converted = in_dtype_of(wanted, new) if get_aval(new).shape == wanted.shape else None
        except TypeError:  # not an array
            converted = None
        if converted is None:
            raise self._mismatch(
                f"{_described(new)} as the new value of {operand!r}, which holds {wanted.str_short()}: return a value "
                "of this type"
            )
        return converted

    def _mismatch(self, problem: str) -> TypeError:
        return mismatch(discharge_rules, self.primitive, problem)

    def __repr__(self) -> str:
        return f"RefPrimitive({self.name!r})"


def _whole(ref: Ref | View) -> Ref:
    """Return the reference that a view is a part of."""
    while isinstance(ref, View):
        ref = ref.ref
    return ref


def _described(x: Any) -> str:
    """Describe what a rule returned in a few words."""
    if isinstance(x, list | tuple):
        return f"a {type(x).__name__} of {len(x)}"
    try:
        return f"{type(x).__name__} {get_aval(x).str_short()}"
    except TypeError:
        return f"{x!r} of type {type(x).__name__}"


@discharge_rules.changed.connect
def _forget_types(primitive: Primitive) -> None:
    """Infer the types of results again after a change of the rule that they follow from."""
    abstract_eval_rules.changed.send(primitive)
