"""`config`, the settings: read from the environment once, changed with `config.override` or `config.update`.

Settings are read in creation functions, plugin discovery and compilation, not for each primitive that is applied.
"""

from __future__ import annotations

import keyword
import os
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from corejax.base.plugin_access import plugin_access, required
from corejax.base.provenance import Provenance
from corejax.base.restoring import Restoring
from corejax.base.seams import Signal
from corejax.base.tables import Entry, Table, when_dropped
from corejax.base.texts import did_you_mean, error_text, message_of
from corejax.settings.selection import Selection

__corejax_registers_for_caller__ = True

_FLAGS = dict.fromkeys(("1", "true", "yes", "on"), True) | dict.fromkeys(("0", "false", "no", "off", ""), False)


def _flag(text: object) -> bool:
    try:
        return _FLAGS[str(text).strip().lower()]
    except KeyError:
        raise ValueError(f"expected one of {', '.join(repr(k) for k in _FLAGS)}, got {text!r}") from None


def _bytes(value: Any) -> int:
    count = int(value)
    if count < 0:
        raise ValueError(f"memory_limit must be a number of bytes, or 0, got {value!r}")
    return count


def _name(expected: str, empty: str | None) -> Callable[[Any], str | None]:
    """Return a parser of names, which converts None and blank text to `empty`; `expected` begins its message."""

    def parse(value: object) -> str | None:
        if value is not None and not isinstance(value, str):
            raise ValueError(f"{expected} got {value!r}")
        return (value or "").strip() or empty

    return parse


def _one_of(name: str, *choices: object, convert: Callable[[Any], object] = str) -> Callable[[Any], Any]:
    """Return a parser that applies `convert` and checks that the result is one of `choices`."""

    def parse(value: object) -> Any:
        converted = convert(value)
        if converted not in choices:
            raise ValueError(f"{name} must be {', '.join(map(str, choices[:-1]))} or {choices[-1]}, got {value!r}")
        return converted

    return parse


def _overrides(value: object) -> bool | str:
    """Parse `rule_overrides`: True, False, or the text of a `Selection` with sorted words, `"-other,acme"`."""
    words = sorted(filter(None, (word.strip() for word in str(value).split(","))))
    if len(words) > 1 or (words and words[0].lower() not in _FLAGS):
        return ",".join(words)
    return _flag(words[0] if words else "")


class Setting(NamedTuple):
    """One setting.

    Attributes:
        initial: the initial value, from the environment or the default.
        parser: converts a user's value, or text from the environment, to the setting's value.
        traced: whether traces depend on the setting.
    """

    initial: Any
    parser: Callable[[Any], Any]
    traced: bool = False


# The docstring of `Config` documents each setting.
_SETTINGS = {
    "default_dtype_bits": Setting(32, _one_of("default_dtype_bits", 32, 64, convert=int), traced=True),
    "check_jaxprs": Setting(False, _flag),
    "check_tracer_leaks": Setting(False, _flag),
    "disable_jit": Setting(False, _flag),
    "debug_nans": Setting(False, _flag),
    "debug_infs": Setting(False, _flag),
    "strict_plugins": Setting(False, _flag),
    "strict_rules": Setting(False, _flag),
    "remember_rules": Setting(True, _flag),
    "rule_overrides": Setting(True, _overrides, traced=True),
    "memory_limit": Setting(0, _bytes),
    "backend": Setting("", _name("backend is a name,", "")),
    "traceback_filtering": Setting(
        "auto",
        _one_of(
            "traceback_filtering",
            *("tracebackhide", "auto", "off", "remove_frames", "quiet_remove_frames"),
            convert=lambda value: str(value).strip().lower(),
        ),
    ),
    "default_matmul_precision": Setting(
        None, _name("default_matmul_precision is a name such as 'highest', or None;", None), traced=True
    ),
    "x64_compat": Setting(False, _flag, traced=True),
    "numpy_dtype_promotion": Setting("standard", _one_of("numpy_dtype_promotion", "standard", "strict"), traced=True),
    "numpy_rank_promotion": Setting("allow", _one_of("numpy_rank_promotion", "allow", "warn", "raise"), traced=True),
}

# JAX's name of a setting -> the setting.
_JAX_NAMES = {
    "enable_x64": "default_dtype_bits",
    "enable_checks": "check_jaxprs",
    "enable_compilation_cache": "compilation_cache",
    "platforms": "backend",
    "platform_name": "backend",
}


def _own_name(name: str, value: object) -> tuple[str, Any]:
    """Convert JAX's name of a setting, with or without the prefix `jax_`, and its value to the setting's own."""
    name = name.removeprefix("jax_")
    if name == "enable_x64":
        value = 64 if _flag(value) else 32
    return _JAX_NAMES.get(name, name), value


def _initialised(name: str, setting: Setting) -> Setting:
    """Return a setting with the value of its environment variable, if that is set."""
    text = os.environ.get("COREJAX_" + name.upper())
    if text is None:
        return setting
    try:
        return setting._replace(initial=setting.parser(text))
    except Exception as error:
        reason = message_of(error) if isinstance(error, ValueError) else error_text(error)
        raise ValueError(f"environment variable COREJAX_{name.upper()}={text!r}: {reason}") from None


def _duplicate_message(name: str, earlier: Entry, duplicate: Entry) -> str:
    return f"setting {name!r} exists, from {earlier.provenance}; {duplicate.provenance} declares a second one"


class Config:
    """Process-wide settings as attributes.

    Attributes:
        default_dtype_bits: 32 (default) or 64; environment `COREJAX_DEFAULT_DTYPE_BITS`.
        check_jaxprs: type-check every jaxpr that a transformation builds; `COREJAX_CHECK_JAXPRS`.
        check_tracer_leaks: look for traced values that outlive their transformation, and raise
            `UnexpectedTracerError`; slow. `COREJAX_CHECK_TRACER_LEAKS`.
        disable_jit: jitted functions and control flow run in Python, operation by operation, for a debugger;
            `COREJAX_DISABLE_JIT`.
        debug_nans: raise `FloatingPointError` if an eager operation, or a compiled function, returns a NaN, with the
            primitive and the user's line; `COREJAX_DEBUG_NANS`.
        debug_infs: the same for infinities; `COREJAX_DEBUG_INFS`.
        strict_plugins: raise an error if a plugin fails; `COREJAX_STRICT_PLUGINS`.
        strict_rules: raise an error in place of using a derived rule; `COREJAX_STRICT_RULES`.
        rule_overrides: whether rules that replace those of another plugin are in force: True, False, or names of
            plugins (`"a,b"` only these, `"-c"` all but that one); `COREJAX_RULE_OVERRIDES`.
        memory_limit: maximal bytes of one value, or of the results and temporaries of one compiled program; 0 (default)
            for the machine's memory. Less than a gibibyte is always allowed. `COREJAX_MEMORY_LIMIT`.
        backend: name of the backend that compiles programs, or of a platform; empty (default) for the first backend;
            `COREJAX_BACKEND`.
        traceback_filtering: "off" shows the library's own frames in tracebacks; "auto" shows only frames of users and
            plugin authors, and a line that counts the others; "remove_frames" drops this line and keeps the whole
            traceback in an `errors.UnfilteredStackTrace`, the exception's cause; "quiet_remove_frames" adds a note to
            the exception in place of the line; "tracebackhide" keeps the library's frames and marks them with the
            local variable `__tracebackhide__`, by which IPython and pytest hide them; `COREJAX_TRACEBACK_FILTERING`.
        default_matmul_precision: precision of products without an explicit one, such as "highest"; None (default) for
            that of the backend; `COREJAX_DEFAULT_MATMUL_PRECISION`.
        x64_compat: follow JAX with x64 off: explicit 64-bit dtypes, and NumPy's 64-bit arrays and scalars, become 32
            bits wide; `COREJAX_X64_COMPAT`.
        numpy_dtype_promotion: "standard", or "strict", which allows only Python's numbers to mix with arrays of another
            dtype; `COREJAX_NUMPY_DTYPE_PROMOTION`.
        numpy_rank_promotion: whether arrays of different ranks, scalars aside, broadcast together: "allow", "warn",
            "raise"; `COREJAX_NUMPY_RANK_PROMOTION`.
        enable_x64: whether `default_dtype_bits` is 64: JAX's name, as `enable_checks` is for `check_jaxprs` and
            `platforms` for `backend`. `update` and `override` accept these names, and the environment variables
            `COREJAX_ENABLE_X64` and `COREJAX_PLATFORMS` are read.
        trace_settings: the settings that traces depend on, name -> default; of a plugin's setting, the initial value.
    """

    trace_settings: dict[str, Any]
    default_dtype_bits: int
    check_jaxprs: bool
    check_tracer_leaks: bool
    disable_jit: bool
    debug_nans: bool
    debug_infs: bool
    strict_plugins: bool
    strict_rules: bool
    rule_overrides: bool | str
    memory_limit: int
    backend: str
    traceback_filtering: str
    default_matmul_precision: str | None
    x64_compat: bool
    numpy_dtype_promotion: str
    numpy_rank_promotion: str
    _settings: Table[str, Setting]
    changed: Signal  # sent after any setting changes

    def __init__(self) -> None:
        self.__dict__["changed"] = Signal("settings")
        own = {name: _initialised(name, setting) for name, setting in _SETTINGS.items()}
        self.__dict__["trace_settings"] = {name: each.initial for name, each in _SETTINGS.items() if each.traced}
        self.__dict__["_settings"] = Table("setting", own, changed=self._put, refusal=_duplicate_message, of_hooks=True)
        self.__dict__.update((name, setting.initial) for name, setting in own.items())
        for name in ("enable_x64", "platforms"):
            if (text := os.environ.get("COREJAX_" + name.upper())) is not None:
                self.update(name, text)

    @property
    def enable_x64(self) -> bool:
        """Whether dtypes are 64 bits wide by default."""
        return self.default_dtype_bits == 64

    x64_enabled = enable_x64  # JAX's name

    def add_setting(
        self,
        name: str,
        default: object,
        parser: Callable[[Any], object] = lambda value: value,
        traced: bool = False,
        *,
        by: Provenance | None = None,
    ) -> None:
        """Declare a plugin's setting; its environment variable is `COREJAX_<NAME>`.

        Args:
            name: name of the setting, an attribute of `config`.
            default: value unless the environment variable is set.
            parser: converts a user's value, or text from the environment, to the setting's value.
            traced: whether traces depend on the setting; traces and programs are then cached for each of its values.
            by: provenance of the declaration; by default the caller.

        Raises:
            DuplicateRegistrationError: a setting of this name exists; the message names its provenance.
            TypeError: the parser is not callable.
            ValueError: the name is malformed or taken, or the environment variable has a wrong value.
        """
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            raise ValueError(f"a setting's name must be an identifier such as 'acme_level', got {name!r}")
        if name not in self._settings and (
            name in self.__dict__ or hasattr(type(self), name) or name in _JAX_NAMES or name == "plugins"
        ):
            raise ValueError(f"setting {name!r} exists, or something else has this name")
        if not callable(parser):
            raise TypeError(f"setting {name!r}: its parser must be a function, got {parser!r}")
        self._settings.register(name, _initialised(name, Setting(default, parser, traced)), provenance=by)
        if traced:
            self.__dict__["trace_settings"] = {**self.trace_settings, name: self.__dict__[name]}

    def update(self, name: str, value: object) -> None:
        """Set one setting for the whole process.

        Raises:
            AttributeError: no setting has that name.
            ValueError: the setting does not accept the value.
        """
        name, value = _own_name(name, value)
        setting = self._setting_of(name)
        earlier = self.__dict__[name]
        try:
            parsed = value if isinstance(value, bool) and isinstance(earlier, bool) else setting.parser(value)
        except ValueError as error:
            if name in str(error):
                raise
            raise ValueError(f"{name}: {error}") from None
        when_dropped(partial(self._undo, name, earlier, parsed))
        self.__dict__[name] = parsed
        try:
            self.changed.send()
        except BaseException:  # for example, no plugin provides the check that the setting turns on
            self.__dict__[name] = earlier
            self.changed.send()
            raise

    def _setting_of(self, name: str) -> Setting:
        if name not in self._settings and not name.startswith("_"):
            plugin_access().load()
        setting = self._settings.get(name)
        if setting is None:
            meant = did_you_mean(name, (*self._settings, *_JAX_NAMES))
            faults = [] if name.startswith("_") else plugin_access().problems("settings")
            known = [] if meant or faults else [f"there are {', '.join(sorted(self._settings))}"]
            raise AttributeError("; ".join([f"no setting named {name!r}{meant}", *faults, *known]))
        return setting

    def __getattr__(self, name: str) -> Any:
        """Return a setting of a plugin that is not loaded yet, or by JAX's name: `jax_debug_nans`, `platform_name`."""
        if name.startswith("jax_"):
            return getattr(self, name.removeprefix("jax_"))
        name = _JAX_NAMES.get(name, name)
        self._setting_of(name)
        return self.__dict__[name]

    def read(self, name: str) -> Any:
        """Return the value of a setting, by its name or JAX's.

        Raises:
            AttributeError: no setting has that name.
        """
        return getattr(self, name)

    def _undo(self, name: str, earlier: object, updated: object) -> None:
        """Undo an update, unless the setting was changed again afterwards."""
        if self.__dict__.get(name) is updated and name in self._settings:
            self.__dict__[name] = earlier
            self.changed.send()

    def _put(self, name: str, setting: Setting | None) -> None:
        if setting is None:
            self.__dict__.pop(name, None)
        else:
            self.__dict__.setdefault(name, setting.initial)

    def values(self) -> dict[str, Any]:
        """Return the values of all settings by name."""
        return {name: self.__dict__[name] for name in list(self._settings)}

    def put_back(self, values: dict[str, Any]) -> None:
        """Restore values that `values` returned."""
        self.__dict__.update(values)
        self.changed.send()

    def __setattr__(self, name: str, value: object) -> None:
        self.update(name, value)

    def config_with_absl(self) -> None:
        """Let `absl.app.run` read settings from the command line; see `corejax.define_absl_flags`."""
        required("define_absl_flags")()

    def parse_flags_with_absl(self) -> None:
        """Read the flags of settings now; see `corejax.parse_absl_flags`."""
        required("parse_absl_flags")()

    def override(self, **settings: object) -> Override:
        """Change settings for a `with` block or, as a decorator, for a function (process-wide, like `update`)."""
        return Override(self, dict(_own_name(name, value) for name, value in settings.items()))

    def overrides_are_on(self, plugin: str | None) -> bool:
        """Return True if a plugin's overrides of rules are in force; they always are for no plugin (None)."""
        overrides = self.rule_overrides
        if plugin is None or isinstance(overrides, bool):
            return plugin is None or bool(overrides)
        return plugin in Selection(overrides)

    def trace_key(self) -> tuple[Any, ...]:
        """Return the settings that differ from their values in `trace_settings`: a part of the key of each trace."""
        value_of = self.__dict__.get  # loading plugins, in any order, does not change the key
        return tuple(sorted([(n, v) for n, d in self.trace_settings.items() if (v := value_of(n, d)) != d]))

    def __repr__(self) -> str:
        return "Config(" + ", ".join(f"{name}={getattr(self, name)!r}" for name in sorted(self._settings)) + ")"


class Override(Restoring):
    """The result of `Config.override`: a context manager and decorator."""

    def __init__(self, config: Config, settings: dict[str, Any]) -> None:
        self.config = config
        self.settings = settings
        self.earlier: dict[str, Any] = {}

    def _recreate_cm(self) -> Override:
        return Override(self.config, self.settings)

    def __enter__(self) -> Config:
        self.earlier = {name: getattr(self.config, name) for name in self.settings}
        try:
            for name, value in self.settings.items():
                self.config.update(name, value)
        except BaseException:
            self.restore()
            raise
        return self.config

    def restore(self) -> None:
        """Restore the settings."""
        self.config.put_back(self.earlier)


config = Config()
