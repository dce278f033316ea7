"""Sharding rules, which name the dimensions of operands and results that are split together.

A dimension is a factor or the product of several factors, and dimensions with the same factor are split alike:
`"i j, j k -> i k"` is the rule of a matrix product. See https://openxla.org/shardy/sharding_propagation.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from corejax.extend import ShapedArray

BATCHING = "…"
"""In a mapping, a group of any number of leading dimensions; a number after it identifies further groups."""

_FACTOR = re.compile(r"[^\W\d_]\w*")
_GROUP = re.compile(rf"{BATCHING}\d*")
_TOKEN = re.compile(r"\s*(?:(?P<group>\.\.\.\d*)|(?P<factor>\w+)|(?P<mark>[(),])|(?P<other>\S))")


class CompoundFactor(tuple[str, ...]):
    """A dimension that is the product of several factors, the outermost first.

    Raises:
        ValueError: there are fewer than two factors, or one is not a valid name.
    """

    __slots__ = ()

    def __new__(cls, *factors: str) -> CompoundFactor:
        """Check the names of the factors, and create the tuple."""
        if len(factors) < 2:
            raise ValueError(f"CompoundFactor: a dimension of several factors has at least two, got {factors}")
        for factor in factors:
            _check_factor("CompoundFactor", factor)
        return tuple.__new__(cls, factors)

    def __repr__(self) -> str:
        return f"CompoundFactor({', '.join(map(repr, self))})"


class ArrayMapping(tuple[Any, ...]):
    """The factors of each dimension of an operand or result.

    Args:
        dim_mappings: the name of a factor or a `CompoundFactor` for each dimension; the first may be `BATCHING`.

    Raises:
        ValueError: an entry is neither, or `BATCHING` is not the first entry.
    """

    __slots__ = ()

    def __new__(cls, *dim_mappings: str | CompoundFactor) -> ArrayMapping:
        """Check the entries, and create the tuple."""
        for i, dim in enumerate(dim_mappings):
            if isinstance(dim, CompoundFactor):
                continue
            if isinstance(dim, str) and _GROUP.fullmatch(dim):
                if i:
                    raise ValueError(f"ArrayMapping: leading dimensions come first, got {dim_mappings}")
                continue
            _check_factor("ArrayMapping", dim)
        return tuple.__new__(cls, dim_mappings)

    def __repr__(self) -> str:
        return f"ArrayMapping({', '.join(map(repr, self))})"


def _check_factor(what: str, factor: Any) -> None:
    if not isinstance(factor, str) or not _FACTOR.fullmatch(factor):
        raise ValueError(
            f"{what}: a factor's name is a letter, then letters, digits and underscores, got {factor!r} of type "
            f"{type(factor).__name__}"
        )


class SdyShardingRule:
    """A sharding rule.

    Args:
        operand_mappings: an `ArrayMapping` for each operand.
        result_mappings: an `ArrayMapping` for each result.
        reduction_factors: factors that are summed over: if they are split, devices have partial sums.
        need_replication_factors: factors that are never split.
        permutation_factors: factors that need an exchange between neighbours if they are split.
        factor_sizes: sizes of the factors that are never a whole dimension.

    Raises:
        ValueError: a factor is not in the mappings, is of two kinds, or its size is missing or superfluous.
    """

    def __init__(
        self,
        operand_mappings: tuple[ArrayMapping, ...],
        result_mappings: tuple[ArrayMapping, ...],
        *,
        reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ) -> None:
        self.operand_mappings = tuple(operand_mappings)
        self.result_mappings = tuple(result_mappings)
        self.reduction_factors = reduction_factors
        self.need_replication_factors = need_replication_factors
        self.permutation_factors = permutation_factors
        self.factor_sizes = factor_sizes
        whole = {dim for mapping in self._mappings() for dim in mapping if isinstance(dim, str)}
        parts = {f for mapping in self._mappings() for dim in mapping if not isinstance(dim, str) for f in dim}
        _check_sizes(whole, parts, factor_sizes)
        _check_kinds(whole | parts, self._kinds())

    def _mappings(self) -> tuple[ArrayMapping, ...]:
        return self.operand_mappings + self.result_mappings

    def _kinds(self) -> dict[str, tuple[str, ...]]:
        names = ("reduction_factors", "need_replication_factors", "permutation_factors")
        return {name: getattr(self, name) for name in names}

    def _key(self) -> tuple[Any, ...]:
        kinds = tuple(self._kinds().values())
        return (self.operand_mappings, self.result_mappings, *kinds, tuple(sorted(self.factor_sizes.items())))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SdyShardingRule) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        options = {**{name: kind for name, kind in self._kinds().items() if kind}, **self.factor_sizes}
        text = "".join(f", {name}={value!r}" for name, value in options.items())
        return f"SdyShardingRule({self.operand_mappings!r}, {self.result_mappings!r}{text})"


def _check_sizes(whole: set[str], parts: set[str], sizes: dict[str, int]) -> None:
    for name, size in sizes.items():
        if name not in whole | parts:
            raise ValueError(f"sharding_rule: {name}={size} is given, but the rule has no factor {name!r}")
        if name in whole:
            raise ValueError(f"sharding_rule: {name}={size} is given, but {name!r} is a dimension, which has its size")
    for name in sorted(parts - whole - set(sizes)):
        raise ValueError(f"sharding_rule: {name!r} is only a part of dimensions; give its size, {name}=...")


def _check_kinds(known: set[str], kinds: dict[str, tuple[str, ...]]) -> None:
    seen: dict[str, str] = {}
    for kind, names in kinds.items():
        if not isinstance(names, tuple):
            raise ValueError(
                f"sharding_rule: {kind} is a tuple of factors, got {names!r} of type {type(names).__name__}"
            )
        for name in names:
            if name not in known or _GROUP.fullmatch(name):
                raise ValueError(f"sharding_rule: {kind} has {name!r}, which is no factor of the rule")
            if name in seen:
                raise ValueError(f"sharding_rule: {name!r} is in {seen[name]} and in {kind}; it can be in one")
            seen[name] = kind


# -- from text ---------------------------------------------------------------------------------------------------------


def parse_rule(text: str, **more: Any) -> SdyShardingRule:
    """Parse the text of a rule, such as `"... i (j k), k -> ... i j"`.

    Args:
        text: the text.
        more: keyword arguments of `SdyShardingRule`.

    Raises:
        TypeError: the text is not a string, or a size is not an integer.
        ValueError: the text is malformed.
    """
    if not isinstance(text, str):
        raise TypeError(
            f"sharding_rule is a text, an SdyShardingRule, or a function that returns one, got {text!r} of type "
            f"{type(text).__name__}"
        )
    for name, value in more.items():
        if not name.endswith("_factors") and not isinstance(value, int):
            raise TypeError(f"sharding_rule: a factor's size is an integer, got {name}={value!r}")
    sides = text.split("->")
    if len(sides) != 2:
        raise ValueError(f"sharding_rule: operands and results have one arrow, ->, between them, got {text!r}")
    operands, results = (_parse_side(side, text) for side in sides)
    return SdyShardingRule(operands, results, **more)


def _parse_side(side: str, text: str) -> tuple[ArrayMapping, ...]:
    mappings: list[list[Any]] = [[]]
    inner: list[str] | None = None
    for token in _TOKEN.finditer(side.rstrip()):
        if token["other"]:
            raise ValueError(f"sharding_rule: {token['other']!r} has no meaning in {text!r}")
        if token["mark"] == "(" and inner is None:
            inner = []
        elif token["mark"] == ")" and inner is not None:
            mappings[-1].append(CompoundFactor(*inner))
            inner = None
        elif token["mark"] == "," and inner is None:
            mappings.append([])
        elif token["mark"]:
            raise ValueError(f"sharding_rule: brackets are not balanced, or nested, in {text!r}")
        elif inner is not None:
            inner.append(token["factor"] or token["group"])
        else:
            group = token["group"]
            mappings[-1].append(token["factor"] if group is None else BATCHING + group[3:])
    if inner is not None:
        raise ValueError(f"sharding_rule: brackets are not balanced, or nested, in {text!r}")
    return tuple([ArrayMapping(*mapping) for mapping in mappings])


# -- of operands -------------------------------------------------------------------------------------------------------


class NumberedRule(NamedTuple):
    """A rule for operands of known types, with numbers in place of names of factors.

    Attributes:
        operands, results: for each value, the factors of each dimension.
        sizes: sizes of the factors.
        reduction, need_replication, permutation: the factors of these kinds.
    """

    operands: tuple[tuple[tuple[int, ...], ...], ...]
    results: tuple[tuple[tuple[int, ...], ...], ...]
    sizes: tuple[int, ...]
    reduction: tuple[int, ...] = ()
    need_replication: tuple[int, ...] = ()
    permutation: tuple[int, ...] = ()


def numbered(
    what: str, rule: SdyShardingRule, avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray]
) -> NumberedRule:
    """Convert a rule to a `NumberedRule` for operands and results of these types.

    Raises:
        ValueError: the rule has another number of operands, results or dimensions, or the product of a dimension's
            factors differs from its size.
    """
    sides = (("operands", rule.operand_mappings, avals), ("results", rule.result_mappings, out_avals))
    sizes: dict[Any, int] = dict(rule.factor_sizes)
    groups: dict[str, int] = {}
    named: list[list[tuple[Any, ...]]] = []
    for kind, mappings, types in sides:
        if len(mappings) != len(types):
            raise ValueError(f"{what}: its sharding rule has {len(mappings)} {kind}, but it has {len(types)}")
        for i, (mapping, aval) in enumerate(zip(mappings, types, strict=True)):
            named.append(_dimensions(f"{what}: {kind[:-1]} {i} of its sharding rule", mapping, aval, sizes, groups))
    for dims, aval in zip(named, (*avals, *out_avals), strict=True):
        for factors, size in zip(dims, aval.shape, strict=True):
            if len(factors) > 1 and math.prod(sizes[f] for f in factors) != size:
                shown = " ".join(f"{f}={sizes[f]}" for f in factors)
                raise ValueError(f"{what}: in its sharding rule ({shown}) is a dimension of size {size}")
    order = list(dict.fromkeys(f for dims in named for factors in dims for f in factors))
    number = {name: i for i, name in enumerate(order)}
    texts = [tuple([tuple([number[f] for f in factors]) for factors in dims]) for dims in named]
    kinds = [tuple([number[f] for f in each]) for each in rule._kinds().values()]
    return NumberedRule(
        tuple(texts[: len(avals)]), tuple(texts[len(avals) :]), tuple([sizes[name] for name in order]), *kinds
    )


def _dimensions(
    what: str, mapping: ArrayMapping, aval: ShapedArray, sizes: dict[Any, int], groups: dict[str, int]
) -> list[tuple[Any, ...]]:
    """Return the factors of each dimension, with groups expanded; record the sizes of factors in `sizes`."""
    dims: list[tuple[Any, ...]] = [(dim,) if isinstance(dim, str) else tuple(dim) for dim in mapping]
    if mapping and isinstance(mapping[0], str) and _GROUP.fullmatch(mapping[0]):
        group = mapping[0][1:] or "0"
        count = aval.ndim - len(dims) + 1
        if groups.setdefault(group, count) != count:
            raise ValueError(f"{what}: ... is {groups[group]} dimensions elsewhere, but {count} of {aval.str_short()}")
        dims[:1] = [((group, k),) for k in range(count)]
    if len(dims) != aval.ndim:
        raise ValueError(f"{what} has {len(dims)} dimensions, but it is {aval.str_short()}")
    for factors, size in zip(dims, aval.shape, strict=True):
        if len(factors) == 1:
            (name,) = factors
            if isinstance(name, tuple) and sizes.setdefault(name, size) != size:
                raise ValueError(f"{what}: a dimension of ... has size {sizes[name]} elsewhere, but {size} here")
            sizes[name] = min(size, sizes.get(name, size))
    return dims
