"""Policies of `checkpoint`, which select the inner values of a function that are saved for the backward pass.

A policy is any hashable function `policy(primitive, *avals_in, **params) -> bool`. It is called for each equation
inside the function with results that the backward pass needs, and returns True if the results are saved. The
function's arguments are always saved. The policies here are dataclasses, so that they print in jaxprs and compare by
value.
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
    """Save all values, as without `checkpoint`."""

    def __call__(self, primitive: Primitive, *avals: Any, **params: Any) -> bool:
        return True


@register_param_type
@dataclass(frozen=True)
class NothingSaveable:
    """Save only the arguments, as `checkpoint` does without a policy."""

    def __call__(self, primitive: Primitive, *avals: Any, **params: Any) -> bool:
        return False


@register_param_type
@dataclass(frozen=True)
class DotsSaveable:
    """Save results of matrix products and convolutions, which are expensive to recompute for their size.

    Attributes:
        only_if_no_batch_dims: if True, save only matrix products without batch dimensions (activations by weights,
            say).
    """

    only_if_no_batch_dims: bool = False

    def __call__(self, primitive: Primitive, *avals: Any, **params: Any) -> bool:
        if not self.only_if_no_batch_dims:
            return primitive.name in ("dot_general", "ragged_dot_general", "conv_general_dilated")
        return primitive.name == "dot_general" and not any(params["dimension_numbers"][1])


@register_param_type
@dataclass(frozen=True)
class SaveOnlyTheseNames:
    """Save only values to which `checkpoint_name` gave one of these names."""

    saveable_names: frozenset[str]

    def __call__(self, primitive: Primitive, *avals: Any, **params: Any) -> bool:
        return primitive.name == "name" and params["name"] in self.saveable_names


@register_param_type
@dataclass(frozen=True)
class SaveAnyNamesButThese:
    """Save only values with a name that is not one of these."""

    names: frozenset[str]

    def __call__(self, primitive: Primitive, *avals: Any, **params: Any) -> bool:
        return primitive.name == "name" and params["name"] not in self.names


@register_param_type
@dataclass(frozen=True)
class SaveAnythingExceptTheseNames:
    """Save all values except those with one of these names."""

    names: frozenset[str]

    def __call__(self, primitive: Primitive, *avals: Any, **params: Any) -> bool:
        return primitive.name != "name" or params["name"] not in self.names


@register_param_type
@dataclass(frozen=True)
class SaveFromBothPolicies:
    """Save the values that either of two policies saves."""

    policy_1: Policy
    policy_2: Policy

    def __call__(self, primitive: Primitive, *avals: Any, **params: Any) -> bool:
        return bool(self.policy_1(primitive, *avals, **params) or self.policy_2(primitive, *avals, **params))


everything_saveable = EverythingSaveable()
nothing_saveable = NothingSaveable()
dots_saveable = checkpoint_dots = DotsSaveable()
dots_with_no_batch_dims_saveable = checkpoint_dots_with_no_batch_dims = DotsSaveable(only_if_no_batch_dims=True)


def save_only_these_names(*names: str) -> Policy:
    """Save only values to which `checkpoint_name` gave one of these names.

    Raises:
        TypeError: if a name is not a string.
    """
    return SaveOnlyTheseNames(_names("save_only_these_names", names))


def save_any_names_but_these(*names: str) -> Policy:
    """Save only values with a name that is not one of these.

    Raises:
        TypeError: if a name is not a string.
    """
    return SaveAnyNamesButThese(_names("save_any_names_but_these", names))


def save_anything_except_these_names(*names: str) -> Policy:
    """Save all values except the results of `checkpoint_name` with one of these names.

    The operand of such a `checkpoint_name` may still be saved.

    Raises:
        TypeError: if a name is not a string.
    """
    return SaveAnythingExceptTheseNames(_names("save_anything_except_these_names", names))


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """Save the values that either of two policies saves.

    Raises:
        TypeError: if a policy is not a function.
    """
    for policy in (policy_1, policy_2):
        if not callable(policy):
            raise TypeError(f"save_from_both_policies takes two policies, got {policy!r}")
    return SaveFromBothPolicies(policy_1, policy_2)


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """Return `dots_with_no_batch_dims_saveable`; values that JAX offloads to another memory stay where they are.

    Args:
        offload_src: kind of memory of the value, `"device"`. Both kinds are ignored, as programs return results in the
            default memory of their devices.
        offload_dst: kind of memory to which JAX moves the value, `"pinned_host"`.

    Raises:
        TypeError: if a kind of memory is not a string.
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
    """Save only values with one of these names; values that JAX offloads to another memory stay where they are.

    Args:
        names_which_can_be_saved: names of values to save.
        names_which_can_be_offloaded: names of values that JAX saves and offloads; they are saved without offloading.
        offload_src: kind of memory, ignored as in `offload_dot_with_no_batch_dims`.
        offload_dst: kind of memory, ignored as well.

    Raises:
        TypeError: if a name or a kind of memory is not a string.
        ValueError: if a name is in both lists.
    """
    function = "save_and_offload_only_these_names"
    _check_kinds(function, offload_src, offload_dst)
    lists = (names_which_can_be_saved, names_which_can_be_offloaded)
    for names in lists:
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise TypeError(f"{function} takes lists of names, got {names!r}")
    saved, offloaded = (_names(function, tuple(names)) for names in lists)
    if both := sorted(saved & offloaded):
        raise ValueError(f"{function}: {', '.join(map(repr, both))} can be saved or offloaded, not both")
    return SaveOnlyTheseNames(saved | offloaded)


def _check_kinds(function: str, offload_src: Any, offload_dst: Any) -> None:
    for name, kind in (("offload_src", offload_src), ("offload_dst", offload_dst)):
        if not isinstance(kind, str):
            raise TypeError(f"{function}: {name} must be a kind of memory such as 'pinned_host', got {kind!r}")


def _names(function: str, names: tuple[Any, ...]) -> frozenset[str]:
    for name in names:
        if not isinstance(name, str):
            raise TypeError(
                f"{function}: names must be strings, got {name!r} of type {type(name).__name__}; pass several names "
                "as several arguments"
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
