"""Every error and warning class of the kernel; the docstrings say when it is raised and what to do."""

from __future__ import annotations

from types import TracebackType


class CorejaxError(Exception):
    """Base class of errors that only corejax raises."""


class MissingRuleError(CorejaxError, NotImplementedError):
    """A primitive met an interpreter for which nobody gave it a rule and none can be derived.

    The message names the rule kind, the primitive, its plugin, the user's line, and the rule to write.
    """

    def __init__(self, message: str, *, primitive: object = None, kind: str = "") -> None:
        super().__init__(message)
        self.primitive = primitive
        self.kind = kind


class NotDifferentiableError(CorejaxError, TypeError, ValueError):
    """Something was differentiated that its author declared not to be differentiable; the message has the reason.

    It is a `ValueError` too, which JAX raises for callbacks.
    """


class NotLinearError(CorejaxError, TypeError):
    """What has to be linear is not: tangents are multiplied by each other, say. It was found while transposing it.

    Most often a JVP rule is wrong, of a primitive that is applied at the line in the message or by `custom_jvp`.
    """


class ShardingTypeError(CorejaxError, TypeError):
    """Operands' types say of their dimensions that they are split in ways that do not go together.

    Only axes of a mesh of type Explicit are in types; `reshard` lays an operand out as the other.
    """


class UnfilteredStackTrace(CorejaxError):
    """The cause of an exception from which the library's frames were removed: it has the whole traceback.

    Only with the setting `traceback_filtering="remove_frames"`.
    """

    filtered: TracebackType | None = None


class DerivedRuleWarning(UserWarning):
    """A derived rule ran that works and is slow; said once for each primitive and rule kind.

    The message names the primitive and the rule to write. `config.strict_rules` refuses derived rules altogether.
    """


class CorejaxDeprecationWarning(DeprecationWarning):
    """A plugin uses something of `corejax.extend` that will be removed; the message names the replacement.

    It points to the author's line. Python hides DeprecationWarnings from a plugin's users; pytest and the command
    `corejax` show them to its author.
    """


class HostCallbackError(CorejaxError, RuntimeError):
    """An impl rule that a compiled program called back on the host raised something that is not at hand any more.

    As a rule what it raised reaches the caller as it is.
    """


class DuplicateRegistrationError(CorejaxError, ValueError):
    """A primitive, rule, operation or name was registered twice; both owners are named."""


class PluginError(CorejaxError, RuntimeError):
    """A plugin failed to load, or something of a plugin that failed was asked for."""


class PluginMissingError(CorejaxError, AttributeError):
    """A name belongs to a plugin that is not installed; the message names the distribution to install."""


class PluginMissingImportError(CorejaxError, ImportError):
    """As `PluginMissingError`, for `from corejax import name`."""


class BackendError(CorejaxError, RuntimeError):
    """A backend or a platform is unknown, cannot be used, or lacks what it was asked for."""


class UnexpectedTracerError(CorejaxError, TypeError):
    """A tracer was used after the transformation that made it had ended (it leaked).

    Typical cause: a traced function stored an intermediate value in a global, an attribute or a list.

        >>> saved = []
        >>> def f(x):
        ...     saved.append(x * 2)  # leaks a tracer
        ...     return x

    Return the value from the function instead (`has_aux=True` where the transformation takes it).
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
    """A key is used for a second time: what is drawn with it would be the same numbers, or depend on them.

    The setting `debug_key_reuse` asks for the check. Make new keys with `random.split` before.
    """


class InconclusiveDimensionOperation(CorejaxError):
    """What is asked of a symbolic size has not one answer for all sizes that it stands for.

    Say more of the sizes (`constraints=` of `export.symbolic_shape`), or export the function for integer sizes.
    """


class JaxprTypeError(CorejaxError, TypeError):
    """A jaxpr breaks one of the invariants that `corejax.ir.check` states.

    Attributes:
        eqn: the outermost equation that breaks one, if it is an equation.
    """

    eqn: object = None


class JaxprSyntaxError(CorejaxError, ValueError):
    """Text that is not a jaxpr; the message shows line, column and the line itself."""


# Names of JAX's that catch more here: whatever fails while a program runs is one, jaxlib's own errors among them.
JaxRuntimeError = RuntimeError
JAXTypeError = TypeError
JAXIndexError = IndexError
