"""Policies of `checkpoint`: which values inside the function are kept for the backward pass.

A policy is any hashable `policy(primitive, *avals_in, **params) -> bool`, asked of each application inside the
function whose results the backward pass needs. The function's arguments are always kept. Those here print as data
in jaxprs and are equal where they say the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from corejax.extend import Primitive
from corejax.extend.programs import Policy, register_param_type


@register_param_type
@dataclass(frozen=True)
class EverythingSaveable:
    """Keep all values, as without `checkpoint`."""

    def __call__(self, primitive: Primitive, *avals: Any, **params: Any) -> bool:
        return True


@register_param_type
@dataclass(frozen=True)
class NothingSaveable:
    """Keep nothing but the arguments: what `checkpoint` does without a policy."""

    def __call__(self, primitive: Primitive, *avals: Any, **params: Any) -> bool:
        return False


@register_param_type
@dataclass(frozen=True)
class DotsSaveable:
    """Keep results of matrix products (and convolutions), which cost much to compute for their size.

    Attributes:
        only_if_no_batch_dims: only of matrix products without batch dimensions (activations by weights, say).
    """

    only_if_no_batch_dims: bool = False

    def __call__(self, primitive: Primitive, *avals: Any, **params: Any) -> bool:
        if not self.only_if_no_batch_dims:
            return primitive.name in ("dot_general", "ragged_dot_general", "conv_general_dilated")
        return primitive.name == "dot_general" and not any(params["dimension_numbers"][1])


@register_param_type
@dataclass(frozen=True)
class SaveOnlyTheseNames:
    """Keep only what `checkpoint_name` gave one of these names."""

    saveable_names: frozenset[str]

    def __call__(self, primitive: Primitive, *avals: Any, **params: Any) -> bool:
        return primitive.name == "name" and params["name"] in self.saveable_names


@register_param_type
@dataclass(frozen=True)
class SaveAnyNamesButThese:
    """Keep only what has a name, unless it is one of these."""

    names: frozenset[str]

    def __call__(self, primitive: Primitive, *avals: Any, **params: Any) -> bool:
        return primitive.name == "name" and params["name"] not in self.names


@register_param_type
@dataclass(frozen=True)
class SaveAnythingExceptTheseNames:
    """Keep everything but what has one of these names."""

    names: frozenset[str]

    def __call__(self, primitive: Primitive, *avals: Any, **params: Any) -> bool:
        return primitive.name != "name" or params["name"] not in self.names


@register_param_type
@dataclass(frozen=True)
class SaveFromBothPolicies:
    """Keep what either of two policies keeps."""

    policy_1: Policy
    policy_2: Policy

    def __call__(self, primitive: Primitive, *avals: Any, **params: Any) -> bool:
        return bool(self.policy_1(primitive, *avals, **params) or self.policy_2(primitive, *avals, **params))


everything_saveable = EverythingSaveable()
nothing_saveable = NothingSaveable()
dots_saveable = checkpoint_dots = DotsSaveable()
dots_with_no_batch_dims_saveable = checkpoint_dots_with_no_batch_dims = DotsSaveable(only_if_no_batch_dims=True)


def save_only_these_names(*names: str) -> Policy:
    """Keep only what `checkpoint_name` gave one of these names.

    Raises:
        TypeError: a name is not a string.
    """
    return SaveOnlyTheseNames(_names("save_only_these_names", names))


def save_any_names_but_these(*names: str) -> Policy:
    """Keep only what has a name, unless it is one of these.

    Raises:
        TypeError: a name is not a string.
    """
    return SaveAnyNamesButThese(_names("save_any_names_but_these", names))


def save_anything_except_these_names(*names: str) -> Policy:
    """Keep everything but what has one of these names; what such a name was given to is kept all the same.

    Raises:
        TypeError: a name is not a string.
    """
    return SaveAnythingExceptTheseNames(_names("save_anything_except_these_names", names))


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """Keep what either of two policies keeps.

    Raises:
        TypeError: a policy is not a function.
    """
    for policy in (policy_1, policy_2):
        if not callable(policy):
            raise TypeError(f"save_from_both_policies takes two policies, got {policy!r}")
    return SaveFromBothPolicies(policy_1, policy_2)


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """As `dots_with_no_batch_dims_saveable`: what JAX moves to another memory is kept where it was computed.

    Args:
        offload_src: the kind of memory that it is in, `"device"`.
        offload_dst: the kind that JAX moves it to, `"pinned_host"`. Programs give results in the default memory of
            their devices, so that neither makes a difference here.

    Raises:
        TypeError: a kind of memory is not a string.
    """
    _check_kinds("offload_dot_with_no_batch_dims", offload_src, offload_dst)
    return dots_with_no_batch_dims_saveable


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Iterable[str],
    names_which_can_be_offloaded: Iterable[str],
    offload_src: str,
    offload_dst: str,
) -> Policy:
    """Keep only what has one of these names; what JAX moves to another memory is kept where it was computed.

    Args:
        names_which_can_be_saved: names of what is kept.
        names_which_can_be_offloaded: of what is kept, too, and moved by JAX.
        offload_src, offload_dst: kinds of memory, as for `offload_dot_with_no_batch_dims`.

    Raises:
        TypeError: a name or a kind of memory is not a string.
        ValueError: a name is among both.
    """
    function = "save_and_offload_only_these_names"
    _check_kinds(function, offload_src, offload_dst)
    given = (names_which_can_be_saved, names_which_can_be_offloaded)
    for names in given:
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise TypeError(f"{function} takes lists of names, got {names!r}")
    saved, offloaded = (_names(function, tuple(names)) for names in given)
    if both := sorted(saved & offloaded):
        raise ValueError(f"{function}: {', '.join(map(repr, both))} can be saved or offloaded, not both")
    return SaveOnlyTheseNames(saved | offloaded)


def _check_kinds(function: str, offload_src: Any, offload_dst: Any) -> None:
    for name, kind in (("offload_src", offload_src), ("offload_dst", offload_dst)):
        if not isinstance(kind, str):
            raise TypeError(f"{function}: {name} is a kind of memory such as 'pinned_host', got {kind!r}")


def _names(function: str, names: tuple[Any, ...]) -> frozenset[str]:
    for name in names:
        if not isinstance(name, str):
            raise TypeError(
                f"{function}: names are strings, got {name!r} of type {type(name).__name__}; several names are "
                "given as several arguments"
            )
    return frozenset(names)


__all__ = [
    "checkpoint_dots",
    "checkpoint_dots_with_no_batch_dims",
    "dots_saveable",
    "dots_with_no_batch_dims_saveable",
    "everything_saveable",
    "nothing_saveable",
    "offload_dot_with_no_batch_dims",
    "save_and_offload_only_these_names",
    "save_any_names_but_these",
    "save_anything_except_these_names",
    "save_from_both_policies",
    "save_only_these_names",
]
