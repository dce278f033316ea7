"""`custom_partitioning`: functions with a user-defined partitioning, and the primitive that calls them.

    custom_partitioning : arrays -> arrays        given a program from arrays to arrays

In a program over several devices, the user's `partition` determines what each device does. Anywhere else, the
primitive runs the program.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import (
    Array,
    ClosedJaxpr,
    FlatFunction,
    Primitive,
    ShapedArray,
    Tracer,
    abstract_eval_rules,
    as_array,
    batch_jaxpr,
    check_arguments,
    fun_name,
    get_aval,
    impl_rules,
    jaxpr_as_fun,
    leaf_names,
    nondifferentiable,
    stage,
    tree,
    vmap_rules,
)
from corejax.extend.messages import api_boundary
from corejax_parallel.partitioning.partition import Batch, Partitioning
from corejax_parallel.partitioning.sharding_rule import (
    BATCHING,
    ArrayMapping,
    CompoundFactor,
    SdyShardingRule,
    parse_rule,
)

__all__ = [
    "BATCHING",
    "ArrayMapping",
    "CompoundFactor",
    "SdyShardingRule",
    "custom_partitioning",
    "custom_partitioning_p",
]

custom_partitioning_p = Primitive(
    "custom_partitioning",
    multiple_results=True,
    tags=("higher_order",),
    jvp=nondifferentiable(
        "the partitioning of its derivative is not defined; wrap it in custom_vjp or custom_jvp, with functions of "
        "custom_partitioning for the derivative"
    ),
    doc="Apply a program with a user-defined partitioning. Params: call (the program), partitioning.",
)


class custom_partitioning:
    """A function with a user-defined partitioning for compiled programs over several devices.

    Call `def_partition` before calling the function. Arguments and results are pytrees of arrays; keyword arguments
    are converted to positional ones. The function can be mapped by `vmap`; to differentiate it, wrap it in `custom_vjp`
    or `custom_jvp`. To see the result of the partitioning, print `corejax.jit(f).lower(x).compile().as_text()`.

    Args:
        fun: the function.
        static_argnums: positions of arguments that are not arrays; `partition` and `sharding_rule` get them first.
    """

    def __init__(self, fun: Callable[..., Any], static_argnums: Sequence[int] = ()) -> None:
        if not callable(fun):
            raise TypeError(f"custom_partitioning takes a function, got {fun!r} of type {type(fun).__name__}")
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.static_argnums = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
        self.partition: Callable[..., Any] | None = None
        self.sharding_rule: Any = None
        self.propagate_user_sharding: Any = None
        self.infer_sharding_from_operands: Any = None
        self.decode_shardings = True

    def def_partition(
        self,
        partition: Callable[..., Any],
        infer_sharding_from_operands: Callable[..., Any] | None = None,
        propagate_user_sharding: Callable[..., Any] | None = None,
        decode_shardings: bool = True,
        sharding_rule: Any = None,
        *,
        reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ) -> Callable[..., Any]:
        """Define the partitioning of the function.

        Args:
            partition: `(*static, mesh, args, result) -> (mesh, lower_fn, result_shardings, arg_shardings)`. `args` and
                `result` have the structure of the function's, with `ShapeDtypeStruct`s as leaves that have the
                shardings of XLA's sharding propagation. `lower_fn` is the function that each device applies to its
                parts; it may use collectives over the axes of the mesh. Arguments are first resharded to
                `arg_shardings`.
            infer_sharding_from_operands: callback for the partitioner that preceded Shardy; stored, never called.
            propagate_user_sharding: another such callback.
            decode_shardings: whether shardings are passed as `NamedSharding`s, if possible.
            sharding_rule: how the shardings of arguments and results depend on each other. Text such as
                `"i j, j k -> i k"`, an `SdyShardingRule`, or a function `(*static, mesh, args, results)` of flat lists
                that returns either, or a pair of a text and a dict of the following arguments.
            reduction_factors: factors that are summed over, if the rule is text; see `SdyShardingRule`.
            need_replication_factors: factors that are never split, if the rule is text.
            permutation_factors: factors that need an exchange between neighbours if they are split, if the rule is
                text.
            factor_sizes: sizes of factors that are never a whole dimension, if the rule is text.

        Returns:
            `partition`.

        Raises:
            TypeError: `partition` is not callable, or the rule has another type.
            ValueError: the rule is malformed, or arguments for a text are given with another rule.
        """
        if not callable(partition):
            raise TypeError(
                f"def_partition of {fun_name(self.fun)}: partition must be a function, got {partition!r} of type "
                f"{type(partition).__name__}"
            )
        kinds = {
            "reduction_factors": reduction_factors,
            "need_replication_factors": need_replication_factors,
            "permutation_factors": permutation_factors,
        }
        options = {**{name: kind for name, kind in kinds.items() if kind}, **factor_sizes}
        if sharding_rule is None or callable(sharding_rule) or isinstance(sharding_rule, SdyShardingRule):
            if options:
                raise ValueError(
                    f"def_partition of {fun_name(self.fun)}: {', '.join(options)} belong to a sharding_rule that is "
                    "text"
                )
        else:
            sharding_rule = parse_rule(sharding_rule, **options)
        self.partition = partition
        self.infer_sharding_from_operands = infer_sharding_from_operands
        self.propagate_user_sharding = propagate_user_sharding
        self.decode_shardings = decode_shardings
        self.sharding_rule = sharding_rule
        return partition

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        what = f"custom_partitioning of {fun_name(self.fun)}"
        partition = self._partition(what)
        args = _positional(what, self.fun, args, kwargs)
        static = self._static(what, args)
        dynamic = tuple([x for i, x in enumerate(args) if i not in static])
        leaves, in_tree = tree.tree_flatten(dynamic)
        check_arguments(what, self.fun, leaves, lambda: leaf_names(in_tree, "args"))
        values = [x if hasattr(x, "aval") else as_array(x) for x in leaves]

        def of_dynamic(*dynamic: Any) -> Any:
            rest = iter(dynamic)
            return self.fun(*[static[i] if i in static else next(rest) for i in range(len(args))])

        flat = FlatFunction(functools.wraps(self.fun)(of_dynamic), in_tree)
        jaxpr, consts = stage(flat, [get_aval(x) for x in values])
        if any(isinstance(c, Tracer) for c in consts):
            raise ValueError(f"{what}: it uses values that are traced outside of it; pass them as arguments")
        if jaxpr.effects:
            raise ValueError(
                f"{what}: it has effects ({', '.join(sorted(jaxpr.effects))}), which happen once, not in parts"
            )
        static_args = tuple(static[i] for i in sorted(static, key=self._order(len(args))))
        partitioning = Partitioning(
            self.fun, partition, self.sharding_rule, self.decode_shardings, static_args, in_tree, flat.out_tree
        )
        outs = custom_partitioning_p.bind(*values, call=ClosedJaxpr(jaxpr, consts), partitioning=partitioning)
        return tree.tree_unflatten(flat.out_tree, outs)

    def _partition(self, what: str) -> Callable[..., Any]:
        if self.partition is None:
            raise ValueError(f"{what}: its partitioning is not defined; call its def_partition first")
        callbacks = (self.propagate_user_sharding, self.infer_sharding_from_operands)
        if self.sharding_rule is None and any(f is not None for f in callbacks):
            raise NotImplementedError(
                f"{what}: infer_sharding_from_operands and propagate_user_sharding belong to the partitioner that "
                "preceded Shardy and are not called; give def_partition a sharding_rule ('i j -> i j')"
            )
        return self.partition

    def _static(self, what: str, args: tuple[Any, ...]) -> dict[int, Any]:
        static = {}
        for i in self.static_argnums:
            if not -len(args) <= i < len(args):
                raise ValueError(f"{what}: static_argnums has {i}, but it is called with {len(args)} arguments")
            if any(isinstance(leaf, Tracer) for leaf in tree.tree_leaves(args[i])):
                raise TypeError(f"{what}: argument {i} is static (static_argnums), but its value is traced")
            static[i % len(args)] = args[i]
        return static

    def _order(self, count: int) -> Callable[[int], int]:
        return [i % count for i in self.static_argnums].index


def _positional(what: str, fun: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Any, ...]:
    """Convert arguments to positional ones, including defaults.

    Raises:
        TypeError: an argument is keyword-only, or the arguments do not match the signature.
    """
    try:
        bound = inspect.signature(fun).bind(*args, **kwargs)
    except ValueError:  # functions in C have no signature
        bound = None
    except TypeError as error:
        raise TypeError(f"{what}: {error}") from None
    if bound is not None:
        bound.apply_defaults()
        args, kwargs = bound.args, bound.kwargs
    if kwargs:
        raise TypeError(f"{what}: arguments must be positional, got {', '.join(kwargs)} by keyword only")
    return tuple(args)


Params = Any  # Partitioning | Batch


@impl_rules.register(custom_partitioning_p, device=True)
def _impl(*args: Array, call: ClosedJaxpr, partitioning: Params) -> list[Array]:
    return list(jaxpr_as_fun(call)(*args))


@abstract_eval_rules.register(custom_partitioning_p)
def _type(*avals: ShapedArray, call: ClosedJaxpr, partitioning: Params) -> list[ShapedArray]:
    for i, (aval, wanted) in enumerate(zip(avals, call.in_avals, strict=True)):
        if (aval.shape, aval.dtype) != (wanted.shape, wanted.dtype):
            raise TypeError(
                f"custom_partitioning: operand {i} is {aval.str_short()}, its program takes {wanted.str_short()}"
            )
    return list(call.out_avals)


@vmap_rules.register(custom_partitioning_p)
def _vmap(
    axis_size: int, vals: Sequence[Any], dims: Sequence[int | None], *, call: ClosedJaxpr, partitioning: Params
) -> tuple[list[Any], list[int]]:
    batched, _ = batch_jaxpr(call, axis_size, dims, instantiate=True)
    outs = custom_partitioning_p.bind(*vals, call=batched, partitioning=Batch(partitioning, tuple(dims)))
    return outs, [0] * len(outs)
