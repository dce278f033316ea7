"""The error and warning classes of the kernel; each docstring tells when the error is raised and what to do."""

from __future__ import annotations

from types import TracebackType
from typing import Any


class CorejaxError(Exception):
    """Base class of errors that only corejax raises."""


class MissingRuleError(CorejaxError, NotImplementedError):
    """A primitive has no rule for an interpreter, and none can be derived.

    The message names the rule kind, the primitive, its plugin, the user's line, and the rule to write.
    """

    def __init__(self, message: str, *, primitive: Any = None, kind: str = "") -> None:
        super().__init__(message)
        self.primitive = primitive
        self.kind = kind


class NotDifferentiableError(CorejaxError, TypeError, ValueError):
    """A primitive was differentiated that its author declared as not differentiable; the message has the reason.

    The class is also a `ValueError`, which JAX raises for callbacks.
    """


class NotLinearError(CorejaxError, TypeError):
    """A program that is transposed is not linear: it multiplies tangents by each other, for example.

    Most often a JVP rule is wrong: that of a primitive applied at the line in the message, or of a `custom_jvp`.
    """


class ShardingTypeError(CorejaxError, TypeError):
    """The types of operands have shardings that conflict.

    Only mesh axes of type Explicit are part of types; `reshard` gives an operand the sharding of another.
    """


class UnboundAxisError(CorejaxError, NameError):
    """No transformation binds the name of an axis that a function uses; `vmap(axis_name=)` and `shard_map` do."""


class UnfilteredStackTrace(CorejaxError):
    """The cause of an exception from which the library's frames were removed; it has the whole traceback.

    Exceptions get it only under the setting `traceback_filtering="remove_frames"`.
    """

    filtered: TracebackType | None = None


class DerivedRuleWarning(UserWarning):
    """A derived rule ran that works but is slow; the warning is given once for each primitive and rule kind.

    The message names the primitive and the rule to write. Under `config.strict_rules` every derived rule is an error.
    """


class CorejaxDeprecationWarning(DeprecationWarning):
    """A plugin uses a name or argument of `corejax.extend` that will be removed; the message names the replacement.

    The warning points to the plugin's line. Python hides DeprecationWarnings from a plugin's users; pytest and the
    command `corejax` show them to the author.
    """


class HostCallbackError(CorejaxError, RuntimeError):
    """An impl rule that a compiled program called on the host raised an error that is no longer available.

    Usually the rule's own error reaches the caller unchanged.
    """


class DuplicateRegistrationError(CorejaxError, ValueError):
    """A primitive, rule, operation or name was registered twice; the message names both owners."""


class PluginError(CorejaxError, RuntimeError):
    """A plugin failed to load, or a name of a plugin that failed was used."""


class PluginMissingError(CorejaxError, AttributeError):
    """A name belongs to a plugin that is not installed; the message names the distribution to install."""


class PluginMissingImportError(CorejaxError, ImportError):
    """The `PluginMissingError` of an import statement, `from corejax import name`."""


class BackendError(CorejaxError, RuntimeError):
    """A backend or a platform is unknown, cannot be used, or lacks a feature that the program needs."""


class UnexpectedTracerError(CorejaxError, TypeError):
    """A tracer was used after its transformation had ended (it leaked).

    Typical cause: a traced function stored an intermediate value in a global, an attribute or a list.

        >>> saved = []
        >>> def f(x):
        ...     saved.append(x * 2)  # leaks a tracer
        ...     return x

    Return the value from the function instead (with `has_aux=True` if the transformation has that option).
    """


class ConcretizationTypeError(CorejaxError, TypeError):
    """A tracer was used where a concrete value is needed: it is abstract, or its tangent would be lost."""


class TracerBoolConversionError(ConcretizationTypeError):
    """`bool()` of an abstract tracer: `if`, `while`, `and`, `or`, `not` or `assert` on a traced value.

    Use `cond`/`select` on the value, or mark the argument as static (`static_argnums`, `static_argnames`).
    """


class TracerIntegerConversionError(ConcretizationTypeError):
    """An abstract tracer was used as an integer: `int()`, `range()`, a list index or a shape.

    Use `dynamic_slice`/`take`, or mark the argument as static (`static_argnums`, `static_argnames`).
    """


class TracerArrayConversionError(ConcretizationTypeError):
    """`numpy.asarray` of a tracer, abstract or with a tangent: a NumPy function was called on a traced value.

    Use the corresponding `corejax.numpy` function.
    """


class NonConcreteBooleanIndexError(CorejaxError, IndexError):
    """A traced array of booleans is an index: the result's shape would depend on its values.

    Use `where(mask, x, other)`, or `nonzero(mask, size=...)` and its indices.
    """


class KeyReuseError(CorejaxError, RuntimeError):
    """A random key is used for a second time, so the new numbers would equal the earlier ones or depend on them.

    The setting `debug_key_reuse` turns the check on. Make new keys with `random.split` before the first use.
    """


class InconclusiveDimensionOperation(CorejaxError):
    """The result of an operation on a symbolic size, such as a comparison, depends on the value of the size.

    Add constraints on the sizes (`constraints=` of `export.symbolic_shape`), or export the function for integer sizes.
    """


class JaxprTypeError(CorejaxError, TypeError):
    """A jaxpr violates one of the invariants that `corejax.ir.check` states.

    Attributes:
        eqn: the outermost equation with the violation, or None if it is not in an equation.
    """

    eqn: object = None


class JaxprSyntaxError(CorejaxError, ValueError):
    """A text is not a jaxpr; the message shows line, column and the line itself."""


# JAX's names, for `except` clauses. They catch more here: jaxlib's errors while a program runs are RuntimeErrors.
JaxRuntimeError = RuntimeError
JAXTypeError = TypeError
JAXIndexError = IndexError
