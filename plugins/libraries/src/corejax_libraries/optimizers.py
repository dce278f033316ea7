"""`corejax.example_libraries.optimizers`: optimisers as triples of functions, small enough to copy and change.

An optimiser is written for one array, and applied to each leaf of a pytree (`optimizer`):

    init(x0) -> state          update(i, gradient, state) -> state          get_params(state) -> x

A step size is a number or a schedule, which is a function from the step number to the step size.

Example:
    >>> import corejax
    >>> from corejax.example_libraries import optimizers
    >>> init, update, get_params = optimizers.momentum(0.1, mass=0.9)
    >>> state = init({"w": 3.0})
    >>> for i in range(100):
    ...     state = update(i, corejax.grad(lambda p: p["w"] ** 2)(get_params(state)), state)
    >>> abs(float(get_params(state)["w"])) < 0.1
    True
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import corejax.numpy as jnp
from corejax.extend import is_array_like, tree

Schedule = Callable[[Any], Any]

__all__ = [
    "JoinPoint",
    "Optimizer",
    "OptimizerState",
    "adagrad",
    "adam",
    "adamax",
    "clip_grads",
    "constant",
    "exponential_decay",
    "inverse_time_decay",
    "l2_norm",
    "make_schedule",
    "momentum",
    "nesterov",
    "optimizer",
    "pack_optimizer_state",
    "piecewise_constant",
    "polynomial_decay",
    "rmsprop",
    "rmsprop_momentum",
    "sgd",
    "sm3",
    "unpack_optimizer_state",
]


class Optimizer(NamedTuple):
    """The three functions of an optimiser, on pytrees.

    Attributes:
        init_fn: parameters -> state.
        update_fn: (step number, gradients, state) -> state.
        params_fn: state -> parameters.
    """

    init_fn: Callable[[Any], Any]
    update_fn: Callable[[Any, Any, Any], Any]
    params_fn: Callable[[Any], Any]


class OptimizerState:
    """The states of all parameters, as one pytree of arrays.

    Attributes:
        packed_state: the leaves of the state of each parameter.
        tree_def: the structure of the parameters.
        subtree_defs: the structure of the state of each parameter.
    """

    __slots__ = ("packed_state", "subtree_defs", "tree_def")

    def __init__(self, packed_state: Sequence[Sequence[Any]], tree_def: Any, subtree_defs: Sequence[Any]) -> None:
        self.packed_state = packed_state
        self.tree_def = tree_def
        self.subtree_defs = tuple(subtree_defs)

    def __repr__(self) -> str:
        return f"OptimizerState({unpack_optimizer_state(self)!r})"


tree.register_pytree_node(
    OptimizerState,
    lambda s: (tuple(tuple(leaves) for leaves in s.packed_state), (s.tree_def, s.subtree_defs)),
    lambda aux, packed: OptimizerState(tuple(packed), *aux),
)


def optimizer(opt_maker: Callable[..., tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]]) -> Any:
    """Convert a factory of optimisers for one array into a factory of optimisers for pytrees; a decorator.

    Args:
        opt_maker: a function that returns `(init, update, get_params)` for one array: `init(x0) -> state`, any pytree;
            `update(i, gradient, state) -> state`; `get_params(state) -> x`.

    Returns:
        A function of the same arguments that returns an `Optimizer`.
    """

    @functools.wraps(opt_maker)
    def tree_opt_maker(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        def check_state(function: str, state: Any) -> None:
            if not isinstance(state, OptimizerState):
                raise TypeError(
                    f"{opt_maker.__name__}: {function} takes a state returned by init or update, got {state!r} of type "
                    f"{type(state).__name__}"
                )

        def tree_init(params: Any) -> OptimizerState:
            leaves, structure = tree.tree_flatten(params)
            return _pack(map(init, leaves), structure)

        def tree_update(i: Any, gradients: Any, state: OptimizerState) -> OptimizerState:
            check_state("update", state)
            leaves, structure = tree.tree_flatten(gradients)
            if structure != state.tree_def:
                raise TypeError(
                    f"{opt_maker.__name__}: gradients have the structure of the parameters, {state.tree_def}, got "
                    f"{structure}"
                )
            states = _states(state)
            updated = [update(i, g, s) for g, s in zip(leaves, states, strict=True)]
            new = _pack(updated, structure)
            for before, after in zip(state.subtree_defs, new.subtree_defs, strict=True):
                if before != after:
                    raise TypeError(
                        f"{opt_maker.__name__}: update returns a state of another structure than init: "
                        f"{after}, not {before}"
                    )
            return new

        def tree_params(state: OptimizerState) -> Any:
            check_state("get_params", state)
            return tree.tree_unflatten(state.tree_def, map(get_params, _states(state)))

        return Optimizer(tree_init, tree_update, tree_params)

    return tree_opt_maker


def _pack(states: Any, structure: Any) -> OptimizerState:
    flat = [tree.tree_flatten(state) for state in states]
    return OptimizerState(tuple(tuple(leaves) for leaves, _ in flat), structure, [sub for _, sub in flat])


def _states(state: OptimizerState) -> list[Any]:
    pairs = zip(state.subtree_defs, state.packed_state, strict=True)
    return [tree.tree_unflatten(structure, leaves) for structure, leaves in pairs]


# -- step sizes --------------------------------------------------------------------------------------------------


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """Return a schedule unchanged, or a constant schedule for a number.

    Raises:
        TypeError: the argument is neither a number nor a function.
    """
    if callable(scalar_or_schedule):
        schedule: Schedule = scalar_or_schedule
        return schedule
    if is_array_like(scalar_or_schedule) and jnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(f"a step size is a number or a function of the step number, got {scalar_or_schedule!r}")


def constant(step_size: Any) -> Schedule:
    """Return a constant step size."""
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """Return the schedule `step_size * decay_rate ** (i / decay_steps)`."""
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False) -> Schedule:
    """Return the schedule `step_size / (1 + decay_rate * i / decay_steps)`; `staircase` rounds the quotient down."""

    def schedule(i: Any) -> Any:
        passed = i / decay_steps
        return step_size / (1 + decay_rate * (jnp.floor(passed) if staircase else passed))

    return schedule


def polynomial_decay(step_size: Any, decay_steps: Any, final_step_size: Any, power: Any = 1.0) -> Schedule:
    """Return a schedule from `step_size` at step 0 to `final_step_size` at step `decay_steps`, by a power law."""

    def schedule(i: Any) -> Any:
        left = 1 - jnp.minimum(i, decay_steps) / decay_steps
        return final_step_size + left**power * (step_size - final_step_size)

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """Return a schedule that is `values[0]` up to and including step `boundaries[0]`, then `values[1]`, and so on.

    Raises:
        ValueError: the arguments are not vectors, or there is not exactly one value more than boundaries.
    """
    limits, levels = jnp.asarray(boundaries), jnp.asarray(values)
    if limits.ndim != 1 or levels.shape != (limits.shape[0] + 1,):
        raise ValueError(
            "piecewise_constant: values are one-dimensional, one more than boundaries, got shapes "
            f"{levels.shape} and {limits.shape}"
        )
    return lambda i: levels[jnp.sum(i > limits)]


# -- optimisers --------------------------------------------------------------------------------------------------


def _first(state: Any) -> Any:
    return state[0]


@optimizer
def sgd(step_size: Any) -> Any:
    """Return gradient descent.

    Args:
        step_size: a number or a schedule.
    """
    size = make_schedule(step_size)
    return lambda x: x, lambda i, g, x: x - size(i) * g, lambda x: x


@optimizer
def momentum(step_size: Any, mass: Any) -> Any:
    """Return gradient descent with momentum: gradients accumulate in a velocity (Polyak 1964).

    Args:
        step_size: a number or a schedule.
        mass: the decay factor of the velocity per step, 0 to 1.
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - size(i) * velocity, velocity

    return lambda x: (x, jnp.zeros_like(x)), update, _first


@optimizer
def nesterov(step_size: Any, mass: Any) -> Any:
    """Return Nesterov's accelerated gradient, a variant of `momentum` that looks one step ahead (Nesterov 1983)."""
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - size(i) * (mass * velocity + g), velocity

    return lambda x: (x, jnp.zeros_like(x)), update, _first


def _over_root(x: Any, squares: Any) -> Any:
    """Return x / sqrt(squares), zero where `squares` is zero."""
    positive = squares > 0
    return jnp.where(positive, x / jnp.sqrt(jnp.where(positive, squares, 1.0)), 0.0)


@optimizer
def adagrad(step_size: Any, momentum: Any = 0.9) -> Any:
    """Return Adagrad: gradients divided by the root of the sum of their squares (Duchi, Hazan, Singer 2011)."""
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, mean = state
        squares = squares + jnp.square(g)
        mean = (1.0 - momentum) * _over_root(g, squares) + momentum * mean
        return x - size(i) * mean, squares, mean

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, _first


@optimizer
def rmsprop(step_size: Any, gamma: Any = 0.9, eps: Any = 1e-8) -> Any:
    """Return RMSProp: gradients divided by the root of a running mean of their squares (Hinton 2012)."""
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares = state
        squares = gamma * squares + (1.0 - gamma) * jnp.square(g)
        return x - size(i) * g / jnp.sqrt(squares + eps), squares

    return lambda x: (x, jnp.zeros_like(x)), update, _first


@optimizer
def rmsprop_momentum(step_size: Any, gamma: Any = 0.9, eps: Any = 1e-8, momentum: Any = 0.9) -> Any:
    """Return `rmsprop` with the momentum of `momentum`."""
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, velocity = state
        squares = gamma * squares + (1.0 - gamma) * jnp.square(g)
        velocity = momentum * velocity + size(i) * g / jnp.sqrt(squares + eps)
        return x - velocity, squares, velocity

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, _first


@optimizer
def adam(step_size: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8) -> Any:
    """Return Adam: running means of gradients and of their squares, with bias correction (Kingma, Ba 2015).

    Args:
        step_size: a number or a schedule.
        b1: the decay factor of the mean of gradients, 0.9 by default.
        b2: the decay factor of the mean of squares, 0.999 by default.
        eps: a number added to the root, 1e-8 by default.
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, squares = state
        mean = (1 - b1) * g + b1 * mean
        squares = (1 - b2) * jnp.square(g) + b2 * squares
        steps = jnp.asarray(i + 1, mean.dtype)
        root = jnp.sqrt(squares / (1 - jnp.asarray(b2, mean.dtype) ** steps))
        return x - size(i) * (mean / (1 - jnp.asarray(b1, mean.dtype) ** steps)) / (root + eps), mean, squares

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, _first


@optimizer
def adamax(step_size: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8) -> Any:
    """Return AdaMax: `adam` with a decaying maximum instead of the mean of squares (Kingma, Ba 2015, section 7.1)."""
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, largest = state
        mean = (1 - b1) * g + b1 * mean
        largest = jnp.maximum(b2 * largest, jnp.abs(g))
        steps = jnp.asarray(i + 1, mean.dtype)
        return x - (size(i) / (1 - jnp.asarray(b1, mean.dtype) ** steps)) * mean / (largest + eps), mean, largest

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, _first


@optimizer
def sm3(step_size: Any, momentum: Any = 0.9) -> Any:
    """Return SM3: `adagrad` with one sum for each row, column, ... instead of each element (Anil et al. 2019)."""
    size = make_schedule(step_size)

    def init(x: Any) -> Any:
        x = jnp.asarray(x)
        shapes = [tuple(n if a == axis else 1 for a in range(x.ndim)) for axis, n in enumerate(x.shape)]
        sums = [jnp.zeros(shape, x.dtype) for shape in shapes]
        return x, jnp.zeros_like(x), sums or [jnp.zeros_like(x)]

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, sums = state
        squares = functools.reduce(jnp.minimum, sums) + jnp.square(g)
        mean = (1.0 - momentum) * _over_root(g, squares) + momentum * mean
        others = [tuple(a for a in range(x.ndim) if a != axis) for axis in range(max(x.ndim, 1))]
        return x - size(i) * mean, mean, [jnp.max(squares, axes, keepdims=True) for axes in others]

    return init, update, _first


# -- gradients ---------------------------------------------------------------------------------------------------


# In `l2_norm` the argument `tree`, named as in JAX, hides the module.
_leaves = tree.tree_leaves


def l2_norm(tree: Any) -> Any:
    """Compute the Euclidean norm of all elements of a pytree."""
    return jnp.sqrt(sum(jnp.sum(jnp.square(jnp.abs(x))) for x in _leaves(tree)))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """Scale gradients so that their norm (`l2_norm`) is at most `max_norm`."""
    norm = l2_norm(grad_tree)
    factor = jnp.where(norm < max_norm, 1.0, max_norm / jnp.where(norm == 0, 1.0, norm))
    return tree.tree_map(lambda g: g * factor.astype(jnp.asarray(g).dtype), grad_tree)


# -- states for checkpoints ---------------------------------------------------------------------------------------


class JoinPoint:
    """The root of the state of one parameter, in a pytree of the parameters' structure.

    Attributes:
        subtree: the state.
    """

    __slots__ = ("subtree",)

    def __init__(self, subtree: Any) -> None:
        self.subtree = subtree

    def __iter__(self) -> Any:
        yield self.subtree

    def __repr__(self) -> str:
        return f"JoinPoint({self.subtree!r})"


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """Return the parameters' pytree with a `JoinPoint`, which holds the state, for each parameter; for pickling."""
    return tree.tree_unflatten(opt_state.tree_def, map(JoinPoint, _states(opt_state)))


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """Convert the result of `unpack_optimizer_state` back to a state.

    Raises:
        TypeError: a leaf is not a `JoinPoint`.
    """
    points, structure = tree.tree_flatten(marked_pytree)
    for point in points:
        if not isinstance(point, JoinPoint):
            raise TypeError(f"pack_optimizer_state: the leaves are JoinPoints, got {point!r}")
    return _pack((point.subtree for point in points), structure)
