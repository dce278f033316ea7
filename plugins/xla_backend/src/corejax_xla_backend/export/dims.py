"""Symbolic sizes of exported functions: polynomials with integer coefficients, in symbols for positive integers.

Operations that are not polynomials (quotients, remainders, maxima and minima) are variables of a polynomial, named by
their text (see `bounds`). Polynomials are normalised, so that equal texts mean equal sizes. A comparison is decided by
bounds on the difference of its sides; if the bounds do not decide it, it raises `InconclusiveDimensionOperation`.
"""

from __future__ import annotations

import ast
import inspect
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import Primitive, ShapedArray, dtypes, jvp_rules, nondifferentiable, tree, xla_translations
from corejax.extend.messages import InconclusiveDimensionOperation, called_frame, called_function
from corejax.extend.types import SymbolicDim
from corejax_xla_backend.export.bounds import OPERATIONS, Operation, range_of

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext

LARGEST = 2**31 - 1  # the largest value of a symbol

Term = tuple[tuple[str, ...], int]  # the sorted variables of a product, and its coefficient


class SymbolicScope:
    """A namespace of symbols, shared by several shapes; expressions of two scopes cannot be combined.

    Args:
        constraints_str: constraints on the sizes, which are positive in any case. Inequalities such as `"b >= 4"` and
            `"2*b <= n"`, or equations with a symbol or an operation on the left, such as `"b == 2*n"` and
            `"mod(b, 2) == 0"`; the right side is then substituted for the left side.

    Raises:
        ValueError: a constraint does not have this form, or never holds.
    """

    def __init__(self, constraints_str: Sequence[str] = ()) -> None:
        texts = (constraints_str,) if isinstance(constraints_str, str) else tuple(constraints_str)
        self.constraints = texts
        self.memo: dict[Any, Any] = {}
        self.lower_bounds: dict[Any, float] = {}  # a cache of `bounds`, cleared by each new constraint
        self._least: dict[str, int] = {}
        self._most: dict[str, int] = {}
        self.known: list[tuple[str, DimExpr]] = []  # texts of inequalities, and expressions that are not negative
        self.operations: dict[str, Operation] = {}
        self.substitutions: dict[str, Any] = {}
        self._equations: list[tuple[str, Any, Any]] = []  # texts of equations, and operations with their values
        for text in texts:
            self._add(text)

    def _add(self, text: str) -> None:
        if "==" in text:
            self._add_equation(text)
            return
        for sign, word in ((1, ">="), (-1, "<=")):
            if word in text:
                left, _, right = text.partition(word)
                self._add_inequality(text, sign * (parse(left, self) - parse(right, self)))
                return
        name = called_function() or "SymbolicScope"
        raise ValueError(f"{name}: a constraint compares two expressions by '>=', '<=' or '==', got {text!r}")

    def _add_equation(self, text: str) -> None:
        left, right = (parse(side, self) for side in text.split("=="))
        terms = left.terms if isinstance(left, DimExpr) else ()
        if len(terms) != 1 or len(terms[0][0]) != 1 or terms[0][1] != 1:
            raise ValueError(
                "an equation has a symbol or an operation on its left, as in 'b == 2*n' and 'mod(b, 2) == 0', got "
                f"{text!r}"
            )
        name = terms[0][0][0]
        if isinstance(right, DimExpr) and name in right.names():
            raise ValueError(f"the equation {text!r} has {name!r} on both sides")
        self.substitutions[name] = right
        self.lower_bounds.clear()
        operation = self.operations.get(name)
        if operation is None:
            return
        self._equations.append((text, operation, right))
        if operation.name in ("max", "min"):
            sign = 1 if operation.name == "max" else -1
            for x in (operation.left, operation.right):
                self._add_inequality(text, sign * (right - x))

    def _add_inequality(self, text: str, known: Any) -> None:
        """Store an expression that is not negative, and the bounds that follow for single symbols and operations."""
        for names, factor in known.terms if isinstance(known, DimExpr) else ():
            most = range_of(known.without(names))[1]  # the rest is at most this, so factor * name + most >= 0
            if len(names) != 1 or math.isinf(most):
                continue
            (name,) = names
            bound = -(int(most) // factor) if factor > 0 else int(most) // -factor
            if factor > 0:
                self._least[name] = max(self._least.get(name, bound), bound)
            else:
                self._most[name] = min(self._most.get(name, bound), bound)
            self.lower_bounds.clear()
            if operator.gt(*self.range_of_name(name)):
                raise ValueError(f"the constraint {text!r} never holds")
        if range_of(known)[1] < 0:
            raise ValueError(f"the constraint {text!r} never holds")
        if isinstance(known, DimExpr):
            self.known.append((text, known))
            self.lower_bounds.clear()

    def range_of_name(self, name: str) -> tuple[float, float]:
        """Return bounds of a symbol or an operation."""
        operation = self.operations.get(name)
        least, most = (1, LARGEST) if operation is None else operation.range()
        return max(least, self._least.get(name, least)), min(most, self._most.get(name, most))

    def apply(self, kind: str, left: Any, right: Any) -> Any:
        """Return an operation as an expression, or the value that an equation gives it."""
        name = f"{kind}({left!r}, {right!r})"
        self.operations.setdefault(name, Operation(kind, left, right))
        return normalized({(name,): 1}, self)

    def violated_constraint(self, sizes: Mapping[str, int]) -> str | None:
        """Return the text of the first constraint that the sizes violate, or None."""
        for text, known in self.known:
            if known.at(sizes) < 0:
                return text
        for text, operation, value in self._equations:
            if operation.at(sizes) != (value.at(sizes) if isinstance(value, DimExpr) else value):
                return text
        return None

    def __repr__(self) -> str:
        return f"SymbolicScope({list(self.constraints)!r})"


class DimExpr(SymbolicDim):
    """A symbolic size: a polynomial that is not constant. Arithmetic returns an integer if the symbols cancel."""

    __slots__ = ("_hash", "scope", "terms")

    def __init__(self, terms: tuple[Term, ...], scope: SymbolicScope) -> None:
        self.terms = terms
        self.scope = scope
        self._hash = hash((terms, id(scope)))

    @property
    def memo(self) -> dict[Any, Any]:  # type: ignore[override]  # an attribute of the base class
        """The `memo` of the scope."""
        return self.scope.memo

    # -- arithmetic --------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        if not _is_size(other):
            return self._as_value(other, operator.add)
        terms = dict(self.terms)
        for names, factor in self._terms_of(other):
            terms[names] = terms.get(names, 0) + factor
        return normalized(terms, self.scope)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, list | tuple):  # sequence repetition needs an integer
            return other * operator.index(self)
        if not _is_size(other):
            return self._as_value(other, operator.mul)
        terms: dict[tuple[str, ...], int] = {}
        for names, factor in self.terms:
            for other_names, other_factor in self._terms_of(other):
                product = tuple(sorted(names + other_names))
                terms[product] = terms.get(product, 0) + factor * other_factor
        return normalized(terms, self.scope)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        return self + other * -1 if _is_size(other) else self._as_value(other, operator.sub)

    def __rsub__(self, other: Any) -> Any:
        return self * -1 + other if _is_size(other) else self._as_value(other, lambda a, b: b - a)

    def __pow__(self, power: Any) -> Any:
        is_exact = type(power) is int and power >= 0
        return math.prod([self] * power) if is_exact else self._as_value(power, operator.pow)

    def __rpow__(self, other: Any) -> Any:
        return self._as_value(other, lambda a, b: b**a)

    def __floordiv__(self, other: Any) -> Any:
        return divmod(self, other)[0]

    def __mod__(self, other: Any) -> Any:
        return divmod(self, other)[1]

    def __divmod__(self, other: Any) -> Any:
        if not _is_size(other):
            return self._as_value(other, operator.floordiv), self._as_value(other, operator.mod)
        if isinstance(other, int) and other == 0:
            raise ZeroDivisionError(f"the size {self!r} is divided by 0")
        leading = max(self._terms_of(other), key=_order)
        quotient, rest = 0, self
        while (term := _divisible_term(rest, leading)) is not None:  # long division
            part = normalized(dict([term]), self.scope)
            quotient, rest = quotient + part, rest - part * other
        if isinstance(rest, int) and rest == 0:
            return quotient, 0
        last, rest = _divide(rest, other)
        return quotient + last, rest

    def __rdivmod__(self, other: Any) -> Any:
        return _divide(other, self)

    def __rfloordiv__(self, other: Any) -> Any:
        return divmod(other, self)[0]

    def __rmod__(self, other: Any) -> Any:
        return divmod(other, self)[1]

    def __truediv__(self, other: Any) -> Any:
        return self._as_value(other, operator.truediv)

    def __rtruediv__(self, other: Any) -> Any:
        return self._as_value(other, lambda a, b: b / a)

    def _as_value(self, other: Any, operation: Callable[[Any, Any], Any]) -> Any:
        """Apply an operation with an array or a float to the size as an array."""
        return operation(self.__corejax_array__(), other)

    def __corejax_array__(self) -> Any:
        return dim_as_value_p.bind(dim=self, dtype=dtypes.scalar_dtype(int))

    # -- comparisons -------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DimExpr) and self.scope is other.scope and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __ge__(self, other: Any) -> Any:
        if not _is_size(other):
            return self._as_value(other, operator.ge)
        least, most = range_of(self - other)
        if least >= 0 or most < 0:
            return least >= 0
        raise _undecided(f"{self!r} >= {other!r}", f"{self!r} >= {other!r}", self - other)

    def __lt__(self, other: Any) -> Any:
        return not self >= other if _is_size(other) else self._as_value(other, operator.lt)

    def __gt__(self, other: Any) -> Any:
        return self >= other + 1 if _is_size(other) else self._as_value(other, operator.gt)

    def __le__(self, other: Any) -> Any:
        return not self >= other + 1 if _is_size(other) else self._as_value(other, operator.le)

    def __bool__(self) -> bool:
        least, most = range_of(self)
        if least > 0 or most < 0:
            return True
        raise _undecided(f"{self!r} is 0", f"{self!r} == 0", self)

    def __index__(self) -> int:
        asked = f"the size {self!r} is needed as an integer, but is not known while the function is exported"
        raise InconclusiveDimensionOperation(
            f"{_with_caller(self, asked)}: export the function for integer sizes, or use shapes and arrays instead of "
            "the integer"
        )

    __int__ = __index__

    # -- others ------------------------------------------------------------------------------------

    def at(self, sizes: Mapping[str, Any]) -> Any:
        """Return the size for values of its symbols."""
        operations = self.scope.operations
        value = {name: operations[name].at(sizes) if name in operations else sizes[name] for name in self.names()}
        return sum(factor * math.prod(value[name] for name in names) for names, factor in self.terms)

    def names(self) -> set[str]:
        """Return the variables of the polynomial: symbols and operations."""
        return {name for names, _ in self.terms for name in names}

    def variables(self) -> set[str]:
        """Return the symbols of the size, including those in operands of operations."""
        symbols = set()
        for name in self.names():
            operation = self.scope.operations.get(name)
            for x in (operation.left, operation.right) if operation is not None else ():
                symbols |= x.variables() if isinstance(x, DimExpr) else set()
            symbols |= {name} if operation is None else set()
        return symbols

    def has_operand(self, variable: str) -> bool:
        """Return whether a symbol occurs in an operand of an operation."""
        operations = [self.scope.operations[name] for name in self.names() if name in self.scope.operations]
        return any(isinstance(x, DimExpr) and variable in x.variables() for each in operations for x in each[1:])

    def extreme(self, kind: str, other: Any) -> Any:
        """Return the maximum (`kind` "max") or the minimum ("min") of this and another size, as a size."""
        least, most = range_of(self - other)
        if least >= 0 or most <= 0:
            return self if (least >= 0) == (kind == "max") else other
        return self.scope.apply(kind, self, other)

    def without(self, names: tuple[str, ...]) -> Any:
        """Return the size without the term of these variables."""
        return normalized({other: factor for other, factor in self.terms if other != names}, self.scope)

    def _terms_of(self, other: Any) -> tuple[Term, ...]:
        if not isinstance(other, DimExpr):
            return (((), operator.index(other)),)
        if other.scope is not self.scope:
            raise ValueError(
                f"the sizes {self!r} and {other!r} have different scopes: pass symbolic_shape the same scope="
            )
        return other.terms

    def __str__(self) -> str:
        return f"⟨{self!r}⟩"

    def __repr__(self) -> str:
        texts = []
        for names, factor in sorted(self.terms, key=lambda term: (-len(term[0]), term[0])):
            parts = [str(abs(factor))] if abs(factor) != 1 or not names else []
            texts.append((" - " if factor < 0 else " + ") + "*".join([*parts, *names]))
        text = "".join(texts)
        return text[3:] if text.startswith(" + ") else text.strip().replace("- ", "-", 1)


def _undecided(question: str, constraint: str, size: DimExpr) -> InconclusiveDimensionOperation:
    asked = _with_caller(size, f"whether {question} depends on the values of the symbolic sizes")
    return InconclusiveDimensionOperation(
        f"{asked}: export the function for integer sizes, or constrain them, as in "
        f'symbolic_shape("...", constraints=["{constraint}"])'
    )


def _with_caller(size: DimExpr, text: str) -> str:
    """Prefix a message with the function that is called, and add the argument that has the size's symbols."""
    name = called_function()
    frame = called_frame() if name else None
    if frame is None:
        return text
    for parameter, argument in _arguments(frame).items():
        for value in tree.tree_leaves(argument):
            sizes = value.aval.shape if hasattr(value, "aval") else (value,)
            if any(isinstance(d, DimExpr) and d.variables() & size.variables() for d in sizes):
                shown = value.aval.str_short() if hasattr(value, "aval") else repr(value)
                return f"{name}: {text} (its argument {parameter} is {shown})"
    return text


def _arguments(frame: FrameType) -> dict[str, Any]:
    """Return the arguments of the function in a frame, or of the function that a decorator's frame is about to call."""
    own, code = frame.f_locals, frame.f_code
    if callable(own.get("fun")) and "args" in own:
        return inspect.signature(own["fun"]).bind_partial(*own["args"], **own.get("kwargs", {})).arguments
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS)
    return {name: own.get(name) for name in code.co_varnames[:count]}


def _is_size(x: Any) -> bool:
    if isinstance(x, DimExpr):
        return True
    return hasattr(x, "__index__") and not hasattr(x, "aval") and not getattr(x, "ndim", 0)


def _order(term: Term) -> tuple[int, tuple[str, ...]]:
    return len(term[0]), term[0]


def _remove(names: Sequence[str], given: list[str]) -> bool:
    """Remove each name once from a list; return False if a name is missing."""
    for name in names:
        if name not in given:
            return False
        given.remove(name)
    return True


def _divisible_term(x: Any, divisor: Term) -> Term | None:
    """Divide the greatest term of `x` that the divisor divides, and return the quotient; None if it divides no term.

    Terms are ordered by degree, then by names.
    """
    terms = x.terms if isinstance(x, DimExpr) else (((), x),) if x else ()
    for names, factor in sorted(terms, key=_order, reverse=True):
        rest = list(names)
        if factor % divisor[1] == 0 and _remove(divisor[0], rest):
            return tuple(rest), factor // divisor[1]
    return None


def _divide(x: Any, y: Any) -> tuple[Any, Any]:
    """Return quotient and remainder, by a shortcut if the quotient is known for all sizes, else as operations."""
    least, most = range_of(x)
    if least >= 0 and range_of(y - x)[0] >= 1:
        return 0, x
    if most < 0 and range_of(x + y)[0] >= 0:
        return -1, x + y
    if isinstance(x, int) and isinstance(y, int):
        return divmod(x, y)
    for names, factor in x.terms if isinstance(x, DimExpr) and isinstance(y, int) else ():
        operation = x.scope.operations.get(names[0]) if len(names) == 1 else None
        if operation is not None and operation.name == "mod" and operation.right == y:
            quotient, rest = divmod(x.without(names) + factor * operation.left, y)
            if isinstance(rest, int) and rest == 0:  # (x + mod(-x, y)) // y == -(-x // y)
                return quotient - factor * (operation.left // y), 0
    scope = next(size.scope for size in (x, y) if isinstance(size, DimExpr))
    return scope.apply("floordiv", x, y), scope.apply("mod", x, y)


def normalized(terms: Mapping[tuple[str, ...], int], scope: SymbolicScope) -> Any:
    """Return the normal form of a polynomial, an integer if it is constant.

    Equations of the scope are substituted, and n * floordiv(x, n) is replaced by x - mod(x, n).
    """
    for names, factor in terms.items() if scope.operations or scope.substitutions else ():
        for i, name in enumerate(names):
            operation = scope.operations.get(name)
            value = scope.substitutions.get(name)
            if value is None and operation is not None and operation.name == "floordiv":
                n = operation.right
                if not isinstance(n, int) or factor % n:
                    continue
                value, factor = operation.left - scope.apply("mod", operation.left, n), factor // n
            if value is not None:
                rest = normalized({key: f for key, f in terms.items() if key != names}, scope)
                return rest + normalized({names[:i] + names[i + 1 :]: factor}, scope) * value
    kept = tuple(sorted((names, factor) for names, factor in terms.items() if factor))
    if not kept:
        return 0
    return kept[0][1] if len(kept) == 1 and not kept[0][0] else DimExpr(kept, scope)


# -- text ----------------------------------------------------------------------------------------------------------

_OPERATIONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def parse(text: str, scope: SymbolicScope) -> Any:
    """Parse an expression such as `2*b + 1`, or the `str` of one.

    Raises:
        ValueError: the text is not an expression.
    """
    return _value(_syntax(text), text, lambda name: normalized({(name,): 1}, scope))


def size_at(text: str, sizes: Mapping[str, Any]) -> Any:
    """Evaluate the text of an expression for sizes of its symbols, which may be symbolic."""
    return _value(_syntax(text), text, sizes.__getitem__)


def as_python(text: str) -> str:
    """Replace `^` by `**`, and the marks `⟨⟩` that `str` puts around an expression by parentheses."""
    return text.translate({ord("^"): "**", ord("⟨"): "(", ord("⟩"): ")"})


@cache
def _syntax(text: str) -> ast.expr:
    try:
        return ast.parse(as_python(text).strip(), mode="eval").body
    except SyntaxError:
        raise _invalid_expression(text) from None


def _value(node: ast.expr, text: str, variable: Callable[[str], Any]) -> Any:
    if isinstance(node, ast.Name):
        return variable(node.id)
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -1 * _value(node.operand, text, variable)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        left, right = (_value(side, text, variable) for side in (node.left, node.right))
        if not isinstance(node.op, ast.Pow) or (type(right) is int and 0 <= right <= 64):
            return _OPERATIONS[type(node.op)](left, right)
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in OPERATIONS
        and len(node.args) == 2
        and not node.keywords
    ):
        left, right = (_value(side, text, variable) for side in node.args)
        return OPERATIONS[node.func.id](left, right)
    raise _invalid_expression(text)


def _invalid_expression(text: str) -> ValueError:
    return ValueError(
        "a symbolic size consists of names, integers, '+', '-', '*', '//', '%', powers, max and min, such as 2*b + 1 "
        f"and max(b // 2, 4); got {text!r}"
    )


# -- sizes as values -----------------------------------------------------------------------------------------------


def _type_of_value(*, dim: DimExpr, dtype: np.dtype[Any]) -> ShapedArray:
    return ShapedArray((), dtype, True)


def _impl(*, dim: DimExpr, dtype: np.dtype[Any]) -> Any:
    return operator.index(dim)  # raises the error that the size is not known


dim_as_value_p = Primitive(
    "dim_as_value",
    impl=_impl,
    abstract_eval=_type_of_value,
    doc="Return a symbolic size as a scalar. Params: dim, dtype.",
)


def _translation(
    ctx: TranslationContext,
    in_avals: Sequence[ShapedArray],
    in_vals: Sequence[Any],
    *,
    dim: DimExpr,
    dtype: np.dtype[Any],
) -> Any:
    return ctx.full(ShapedArray((), dtype), dim)


xla_translations.register(dim_as_value_p, _translation)
jvp_rules.register(dim_as_value_p, nondifferentiable("it has no operands"))
