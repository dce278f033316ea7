"""`config`, the settings: read from the environment once, changed with `config.override` or `config.update`.

A setting is read at the edges (creation functions, plugin discovery, compilation), never per primitive.
"""

from __future__ import annotations

import itertools
import keyword
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from corejax.base.plugin_access import plugin_access
from corejax.base.provenance import Provenance
from corejax.base.restoring import Restoring
from corejax.base.seams import Signal
from corejax.base.tables import Entry, Table, when_dropped
from corejax.base.texts import did_you_mean, error_text, message_of
from corejax.settings.selection import Selection

__corejax_registers_for_caller__ = True

_FLAG_PREFIX = "corejax_"  # what flags of the command line begin with
_FLAGS = dict.fromkeys(("1", "true", "yes", "on"), True) | dict.fromkeys(("0", "false", "no", "off", ""), False)


def _flag(text: Any) -> bool:
    try:
        return _FLAGS[str(text).strip().lower()]
    except KeyError:
        raise ValueError(f"expected one of {', '.join(repr(k) for k in _FLAGS)}, got {text!r}") from None


def _bytes(value: Any) -> int:
    count = int(value)
    if count < 0:
        raise ValueError(f"memory_limit is a number of bytes, or 0, got {value!r}")
    return count


def _name(expected: str, empty: str | None) -> Callable[[Any], str | None]:
    """Return the parser of a name, which stands for None and blanks as `empty`."""

    def parse(value: Any) -> str | None:
        if value is not None and not isinstance(value, str):
            raise ValueError(f"{expected} got {value!r}")
        return (value or "").strip() or empty

    return parse


def _one_of(name: str, *choices: Any, written: Callable[[Any], Any] = str) -> Callable[[Any], Any]:
    """Return the parser of one of several values; `written` makes one of a text."""

    def parse(value: Any) -> Any:
        found = written(value)
        if found not in choices:
            raise ValueError(f"{name} must be {', '.join(map(str, choices[:-1]))} or {choices[-1]}, got {value!r}")
        return found

    return parse


def _overrides(value: Any) -> bool | str:
    """All, none, or the selection's text, its words in one order: `"acme,-other"`."""
    words = sorted(filter(None, (word.strip() for word in str(value).split(","))))
    if len(words) > 1 or (words and words[0].lower() not in _FLAGS):
        return ",".join(words)
    return _flag(words[0] if words else "")


class Setting(NamedTuple):
    """One setting.

    Attributes:
        initial: its value in the beginning.
        parser: makes a value of what is given, text from the environment too.
        traced: whether traces depend on it.
    """

    initial: Any
    parser: Callable[[Any], Any]
    traced: bool = False


# `Config` says what each does.
_SETTINGS = {
    "default_dtype_bits": Setting(32, _one_of("default_dtype_bits", 32, 64, written=int), traced=True),
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
            written=lambda value: str(value).strip().lower(),
        ),
    ),
    "default_matmul_precision": Setting(
        None, _name("default_matmul_precision is a name such as 'highest', or None;", None), traced=True
    ),
    "x64_compat": Setting(False, _flag, traced=True),
    "numpy_dtype_promotion": Setting("standard", _one_of("numpy_dtype_promotion", "standard", "strict"), traced=True),
    "numpy_rank_promotion": Setting("allow", _one_of("numpy_rank_promotion", "allow", "warn", "raise"), traced=True),
}

# What JAX calls a setting -> the setting, and its value by JAX's.
_JAX_NAMES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "enable_x64": ("default_dtype_bits", lambda on: 64 if (on if isinstance(on, bool) else _flag(str(on))) else 32),
    "enable_checks": ("check_jaxprs", lambda on: on),
    "enable_compilation_cache": ("compilation_cache", lambda on: on),
    "platforms": ("backend", lambda name: name),
    "platform_name": ("backend", lambda name: name),
}


def _own_name(name: str, value: Any) -> tuple[str, Any]:
    """A setting and its value, by JAX's name for it or its own; with the prefix `jax_` or without."""
    name = name.removeprefix("jax_")
    own, of_value = _JAX_NAMES.get(name, (name, None))
    return own, value if of_value is None else of_value(value)


def _initialised(name: str, setting: Setting) -> Setting:
    """Return a setting with the environment's value, if there is one."""
    text = os.environ.get("COREJAX_" + name.upper())
    if text is None:
        return setting
    try:
        return setting._replace(initial=setting.parser(text))
    except Exception as error:
        said = message_of(error) if isinstance(error, ValueError) else error_text(error)
        raise ValueError(f"environment variable COREJAX_{name.upper()}={text!r}: {said}") from None


def _second(name: str, earlier: Entry, given: Entry) -> str:
    return f"setting {name!r} exists, from {earlier.provenance}; {given.provenance} declares a second one"


class Config:
    """Process-wide settings as attributes.

    Attributes:
        default_dtype_bits: 32 (default) or 64; environment `COREJAX_DEFAULT_DTYPE_BITS`.
        check_jaxprs: type-check every jaxpr that a transformation builds; `COREJAX_CHECK_JAXPRS`.
        check_tracer_leaks: look for traced values that outlive their transformation, and raise
            `UnexpectedTracerError`; slow. `COREJAX_CHECK_TRACER_LEAKS`.
        disable_jit: jitted functions and control flow run in Python, operation by operation, for a debugger;
            `COREJAX_DISABLE_JIT`.
        debug_nans: raise `FloatingPointError` where an eager operation, or a compiled function, gives a NaN, with the
            primitive and the user's line; `COREJAX_DEBUG_NANS`.
        debug_infs: the same for infinities; `COREJAX_DEBUG_INFS`.
        strict_plugins: raise on a plugin's fault; `COREJAX_STRICT_PLUGINS`.
        strict_rules: refuse derived rules; `COREJAX_STRICT_RULES`.
        rule_overrides: whether rules with which plugins replace others' are in force: True, False, or names of
            plugins (`"a,b"` these only, `"-c"` all but that one); `COREJAX_RULE_OVERRIDES`.
        memory_limit: bytes that one value, or the results and temporaries of one compiled program, may take; 0
            (default): as many as the machine has. Less than a gibibyte is never refused. `COREJAX_MEMORY_LIMIT`.
        backend: name of the backend that programs are compiled by, or of a platform; empty (default): the first
            backend there is; `COREJAX_BACKEND`.
        traceback_filtering: "off" shows the library's own frames in tracebacks; "auto" shows the user's and plugin
            authors' only, and a line for what was left out; "remove_frames" has no such line and keeps the whole
            traceback, in an `errors.UnfilteredStackTrace` that is the exception's cause; "quiet_remove_frames" has a
            note on the exception in place of the line; "tracebackhide" keeps the library's frames and marks them with a
            local variable `__tracebackhide__`, by which IPython and pytest hide them; `COREJAX_TRACEBACK_FILTERING`.
        default_matmul_precision: precision of products for which none is given, "highest" say; None (default) leaves it
            to the backend; `COREJAX_DEFAULT_MATMUL_PRECISION`.
        x64_compat: JAX's own x64-off behaviour: what is made with an explicit 64-bit type, and NumPy's arrays and
            scalars wherever they enter, become 32 bits wide; `COREJAX_X64_COMPAT`.
        numpy_dtype_promotion: "standard" or "strict", where only Python's numbers yield to arrays, and arrays of two
            dtypes do not mix; `COREJAX_NUMPY_DTYPE_PROMOTION`.
        numpy_rank_promotion: whether arrays of different ranks, scalars aside, broadcast together: "allow", "warn",
            "raise"; `COREJAX_NUMPY_RANK_PROMOTION`.
        enable_x64: whether `default_dtype_bits` is 64: JAX's name, as `enable_checks` is for `check_jaxprs` and
            `platforms` for `backend`; `update` and `override` take these, and `COREJAX_ENABLE_X64` and
            `COREJAX_PLATFORMS` are read too.
        trace_settings: names of the settings that traces depend on.
    """

    trace_settings: tuple[str, ...]
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
        self.__dict__["trace_settings"] = tuple(name for name, setting in own.items() if setting.traced)
        self.__dict__["_settings"] = Table("setting", own, changed=self._put, refusal=_second, of_hooks=True)
        self.__dict__.update((name, setting.initial) for name, setting in own.items())
        for name in ("enable_x64", "platforms"):
            if (text := os.environ.get("COREJAX_" + name.upper())) is not None:
                self.update(name, text)

    @property
    def enable_x64(self) -> bool:
        """Whether dtypes are 64 bits wide by default."""
        return self.default_dtype_bits == 64

    x64_enabled = enable_x64  # the name that users of JAX read

    def add_setting(
        self,
        name: str,
        default: Any,
        parser: Callable[[Any], Any] = lambda value: value,
        traced: bool = False,
        *,
        by: Provenance | None = None,
    ) -> None:
        """Declare a plugin's setting; its environment variable is `COREJAX_<NAME>`.

        Args:
            name: of the setting.
            default: its value.
            parser: makes a value of what is given, text from the environment too.
            traced: whether traces depend on it, so that what is traced and compiled is kept for each of its values.
            by: who declares it, where that is not the caller.

        Raises:
            DuplicateRegistrationError: a setting of this name exists; names who declared it.
            TypeError: the parser is not callable.
            ValueError: something else goes by the name, or it is no name for one; or the environment has a wrong value.
        """
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            raise ValueError(f"a setting's name is a word such as 'acme_level', got {name!r}")
        if name not in self._settings and (
            name in self.__dict__ or hasattr(type(self), name) or name in _JAX_NAMES or name == "plugins"
        ):
            raise ValueError(f"setting {name!r} exists, or something else goes by this name")
        if not callable(parser):
            raise TypeError(f"setting {name!r}: its parser is a function, got {parser!r}")
        self._settings.register(name, _initialised(name, Setting(default, parser, traced)), provenance=by)
        if traced and name not in self.trace_settings:
            self.__dict__["trace_settings"] = (*self.trace_settings, name)

    def update(self, name: str, value: Any) -> None:
        """Set one setting for the whole process.

        Raises:
            AttributeError: there is no such setting.
            ValueError: the value is not one that the setting takes.
        """
        name, value = _own_name(name, value)
        setting = self._setting_of(name)
        earlier = self.__dict__[name]
        flag = isinstance(value, bool) and isinstance(earlier, bool)
        try:
            parsed = value if flag else setting.parser(value)
        except ValueError as error:
            if name in str(error):
                raise
            raise ValueError(f"{name}: {error}") from None
        when_dropped(partial(self._back, name, earlier, parsed))
        self.__dict__[name] = parsed
        try:
            self.changed.send()
        except BaseException:  # no plugin provides what the setting turns on
            self.__dict__[name] = earlier
            self.changed.send()
            raise

    def _setting_of(self, name: str) -> Setting:
        if name not in self._settings and not name.startswith("_"):
            plugin_access().load()
        setting = self._settings.get(name)
        if setting is None:
            meant = did_you_mean(name, (*self._settings, *_JAX_NAMES))
            raise AttributeError(
                f"no setting named {name!r}" + (meant or f"; there are {', '.join(sorted(self._settings))}")
            )
        return setting

    def __getattr__(self, name: str) -> Any:
        """A setting of a plugin that is not loaded yet, or by JAX's name: `jax_debug_nans`, `platform_name`."""
        if name.startswith("jax_"):
            return getattr(self, name.removeprefix("jax_"))
        name = _JAX_NAMES[name][0] if name in _JAX_NAMES else name
        self._setting_of(name)
        return self.__dict__[name]

    def read(self, name: str) -> Any:
        """The value of a setting, by its name or JAX's.

        Raises:
            AttributeError: there is no such setting.
        """
        return getattr(self, name)

    def _back(self, name: str, earlier: Any, given: Any) -> None:
        """Undo an update, unless somebody has made another since then."""
        if self.__dict__.get(name) is given and name in self._settings:
            self.__dict__[name] = earlier
            self.changed.send()

    def _put(self, name: str, setting: Setting | None) -> None:
        if setting is None:
            self.__dict__.pop(name, None)
        else:
            self.__dict__.setdefault(name, setting.initial)

    def values(self) -> dict[str, Any]:
        """All settings."""
        return {name: self.__dict__[name] for name in list(self._settings)}

    def put_back(self, values: dict[str, Any]) -> None:
        """Settings as they were."""
        self.__dict__.update(values)
        self.changed.send()

    def __setattr__(self, name: str, value: Any) -> None:
        self.update(name, value)

    def config_with_absl(self) -> None:
        """Have `absl.app.run` read settings from the command line: `--corejax_debug_nans`, `--corejax_backend=cpu`.

        Raises:
            ImportError: absl-py is not installed.
        """
        from absl import app, flags  # no dependency

        plugin_access().load()
        for name in (*self._settings, "enable_x64", "enable_checks", "platforms"):
            if _FLAG_PREFIX + name in flags.FLAGS:
                continue
            value, text = getattr(self, name), f"corejax's setting {name}"
            if isinstance(value, bool) and name != "rule_overrides":  # which may be names of plugins
                flags.DEFINE_bool(_FLAG_PREFIX + name, value, text)
            else:
                flags.DEFINE_string(_FLAG_PREFIX + name, None if value is None else str(value), text)
        app.call_after_init(self._read_flags)

    def parse_flags_with_absl(self) -> None:
        """The same for a program that does not call `absl.app.run`: flags of settings are read now, others left."""
        from absl import flags

        self.config_with_absl()
        given = itertools.takewhile(lambda word: word != "--", sys.argv[1:])
        ours = [word for word in given if word.lstrip("-").removeprefix("no").startswith(_FLAG_PREFIX)]
        flags.FLAGS([sys.argv[0], *ours], known_only=True)
        self._read_flags()

    def _read_flags(self) -> None:
        """Set those settings whose flags are on the command line."""
        from absl import flags

        for name in flags.FLAGS:
            if name.startswith(_FLAG_PREFIX) and flags.FLAGS[name].present:
                self.update(name.removeprefix(_FLAG_PREFIX), flags.FLAGS[name].value)

    def override(self, **settings: Any) -> Override:
        """Settings for the length of a `with` block (process-wide, like `update`)."""
        return Override(self, dict(_own_name(name, value) for name, value in settings.items()))

    def overrides_are_on(self, plugin: str | None) -> bool:
        """Whether rules with which a plugin replaces others' are in force; those of no plugin (None) always are."""
        chosen = self.rule_overrides
        if plugin is None or isinstance(chosen, bool):
            return plugin is None or bool(chosen)
        return plugin in Selection(chosen)

    def trace_key(self) -> tuple[Any, ...]:
        """What a cached trace depends on besides its arguments."""
        return tuple(map(self.__dict__.get, self.trace_settings))

    def __repr__(self) -> str:
        return "Config(" + ", ".join(f"{name}={getattr(self, name)!r}" for name in sorted(self._settings)) + ")"


class Override(Restoring):
    """What `Config.override` returns: a context manager, which is a decorator too."""

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
        """The settings as they were before."""
        self.config.put_back(self.earlier)


config = Config()


# -- context managers under JAX's names ----------------------------------------------------------------------------


def enable_x64(new_val: bool = True) -> Override:
    """`config.override(default_dtype_bits=64)`, or 32: a context manager and decorator."""
    return config.override(enable_x64=new_val)


def enable_checks(new_val: bool = True) -> Override:
    """`config.override(check_jaxprs=...)`: a context manager and decorator."""
    return config.override(check_jaxprs=new_val)


def disable_jit(disable: bool = True) -> Override:
    """`config.override(disable_jit=...)`: a context manager and decorator."""
    return config.override(disable_jit=disable)


def check_tracer_leaks(new_val: bool = True) -> Override:
    """`config.override(check_tracer_leaks=...)`: a context manager and decorator."""
    return config.override(check_tracer_leaks=new_val)


def checking_leaks() -> Override:
    """`config.override(check_tracer_leaks=True)`: a context manager and decorator."""
    return config.override(check_tracer_leaks=True)


def debug_nans(new_val: bool = True) -> Override:
    """`config.override(debug_nans=...)`: a context manager and decorator."""
    return config.override(debug_nans=new_val)


def debug_infs(new_val: bool = True) -> Override:
    """`config.override(debug_infs=...)`: a context manager and decorator."""
    return config.override(debug_infs=new_val)


def numpy_dtype_promotion(new_val: str) -> Override:
    """`config.override(numpy_dtype_promotion=...)`: a context manager and decorator."""
    return config.override(numpy_dtype_promotion=new_val)


def numpy_rank_promotion(new_val: str) -> Override:
    """`config.override(numpy_rank_promotion=...)`: a context manager and decorator."""
    return config.override(numpy_rank_promotion=new_val)
