"""`config`, the settings: read from the environment once, changed with `config.override` or `config.update`.

A setting is read at the edges (creation functions, plugin discovery, compilation), never per primitive.
"""

from __future__ import annotations

import keyword
import os
from collections.abc import Callable
from typing import Any

from corejax.journal import Table
from corejax.restoring import Restoring

_FLAGS = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
    "": False,
}


def _flag(text: str) -> bool:
    try:
        return _FLAGS[text.strip().lower()]
    except KeyError:
        raise ValueError(f"expected one of {', '.join(repr(k) for k in _FLAGS)}, got {text!r}") from None


def _bits(value: Any) -> int:
    bits = int(value)
    if bits not in (32, 64):
        raise ValueError(f"default_dtype_bits must be 32 or 64, got {value!r}")
    return bits


def _bytes(value: Any) -> int:
    count = int(value)
    if count < 0:
        raise ValueError(f"memory_limit is a number of bytes, or 0, got {value!r}")
    return count


def _overrides(value: Any) -> bool | str:
    """All, none, or the selection's text, its words in one order: `"acme,-other"`."""
    words = sorted(filter(None, (word.strip() for word in str(value).split(","))))
    if len(words) > 1 or (words and words[0].lower() not in _FLAGS):
        return ",".join(words)
    return _flag(words[0] if words else "")


def _filtering(value: Any) -> str:
    mode = str(value).strip().lower()
    if mode not in ("auto", "off", "remove_frames"):
        raise ValueError(f"traceback_filtering must be auto, off or remove_frames, got {value!r}")
    return mode


# name -> (default, parser of the environment's text, what it does)
_SETTINGS: dict[str, tuple[Any, Callable[[Any], Any], str]] = {
    "default_dtype_bits": (32, _bits, "width of dtypes made from Python scalars and by creation functions: 32 or 64"),
    "check_jaxprs": (False, _flag, "run the jaxpr type checker after every transformation"),
    "strict_plugins": (False, _flag, "raise when a plugin fails to load instead of recording the fault"),
    "strict_rules": (False, _flag, "refuse derived rules"),
    "rule_overrides": (True, _overrides, "rules that replace another plugin's: all, none, a,b only, -c all but"),
    "memory_limit": (0, _bytes, "bytes that one value or program may take; 0: what the machine has"),
    "traceback_filtering": ("auto", _filtering, "the library's frames in tracebacks: auto, off, remove_frames"),
    "x64_compat": (False, _flag, "as JAX with x64 off: explicit 64-bit types, and NumPy's arrays, become 32 bits wide"),
}


class Config:
    """Process-wide settings as attributes.

    Attributes:
        default_dtype_bits: 32 (default) or 64; environment `COREJAX_DEFAULT_DTYPE_BITS`.
        check_jaxprs: type-check every jaxpr that a transformation builds; `COREJAX_CHECK_JAXPRS`.
        strict_plugins: raise on a plugin's fault; `COREJAX_STRICT_PLUGINS`.
        strict_rules: refuse derived rules; `COREJAX_STRICT_RULES`.
        rule_overrides: whether rules with which plugins replace others' are in force: True, False, or names of
            plugins (`"a,b"` these only, `"-c"` all but that one); `COREJAX_RULE_OVERRIDES`.
        memory_limit: bytes that one value, or the results and temporaries of one compiled program, may take; 0
            (default): as many as the machine has. Less than a gibibyte is never refused. `COREJAX_MEMORY_LIMIT`.
        traceback_filtering: "off" shows the library's own frames in tracebacks; "remove_frames" and "auto" (now the
            same) show the user's and plugin authors' only; `COREJAX_TRACEBACK_FILTERING`.
        x64_compat: JAX's own x64-off behaviour: what is made with an explicit 64-bit type, and NumPy's arrays and
            scalars wherever they enter, become 32 bits wide; `COREJAX_X64_COMPAT`.
        trace_settings: names of the settings that traces depend on.
    """

    trace_settings = ("default_dtype_bits", "x64_compat", "rule_overrides")

    default_dtype_bits: int
    check_jaxprs: bool
    strict_plugins: bool
    strict_rules: bool
    rule_overrides: bool | str
    memory_limit: int
    traceback_filtering: str
    x64_compat: bool
    _parsers: Table  # name -> parser
    on_change: list[Callable[[], None]]  # called after any setting changes

    def __init__(self) -> None:
        self.__dict__["on_change"] = []
        parsers = {name: parser for name, (_, parser, _) in _SETTINGS.items()}
        self.__dict__["_parsers"] = Table("settings", parsers, read=self._entry, put=self._put)
        for name, (default, parser, _) in _SETTINGS.items():
            text = os.environ.get("COREJAX_" + name.upper())
            self.__dict__[name] = default if text is None else self._parsed(name, parser, text)

    @staticmethod
    def _parsed(name: str, parser: Callable[[str], Any], text: str) -> Any:
        try:
            return parser(text)
        except Exception as error:
            from corejax.texts import error_text, message_of  # needed for an error only

            said = message_of(error) if isinstance(error, ValueError) else error_text(error)
            raise ValueError(f"environment variable COREJAX_{name.upper()}={text!r}: {said}") from None

    def add_setting(self, name: str, default: Any, parser: Callable[[Any], Any] = lambda value: value) -> None:
        """Declare a plugin's setting; its environment variable is `COREJAX_<NAME>`.

        Raises:
            TypeError: the parser is not callable.
            ValueError: a setting of this name exists, or it is no name for one; or the environment has a wrong value.
        """
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            raise ValueError(f"a setting's name is a word such as 'acme_level', got {name!r}")
        if name in self._parsers or hasattr(self, name) or name == "plugins":
            raise ValueError(f"setting {name!r} exists, or something else goes by this name")
        if not callable(parser):
            raise TypeError(f"setting {name!r}: its parser is a function, got {parser!r}")
        text = os.environ.get("COREJAX_" + name.upper())
        value = default if text is None else self._parsed(name, parser, text)
        self._parsers[name] = parser
        self.__dict__[name] = value

    def update(self, name: str, value: Any) -> None:
        """Set one setting for the whole process.

        Raises:
            AttributeError: there is no such setting.
            ValueError: the value is not one that the setting takes.
        """
        parser = self._parsers.get(name)
        if parser is None:
            raise AttributeError(f"no setting named {name!r}; there are {', '.join(sorted(self._parsers))}")
        flag = isinstance(value, bool) and isinstance(self.__dict__[name], bool)
        parsed = value if flag else parser(value)
        self._parsers.touch(name)
        self.__dict__[name] = parsed
        self._changed()

    def _entry(self, name: str) -> tuple[Callable[[Any], Any], Any] | None:
        return (self._parsers[name], self.__dict__.get(name)) if name in self._parsers else None

    def _put(self, name: str, entry: tuple[Callable[[Any], Any], Any] | None) -> None:
        """Put a setting back as it was, or away."""
        if entry is None:
            self._parsers.pop(name, None)
            self.__dict__.pop(name, None)
        else:
            self._parsers[name], self.__dict__[name] = entry

    def _changed(self) -> None:
        for hook in self.on_change:
            hook()

    def __setattr__(self, name: str, value: Any) -> None:
        self.update(name, value)

    def override(self, **settings: Any) -> Override:
        """Settings for the length of a `with` block (process-wide, like `update`)."""
        return Override(self, settings)

    def overrides_are_on(self, plugin: str | None) -> bool:
        """Whether rules with which a plugin replaces others' are in force; those of no plugin (None) always are."""
        chosen = self.rule_overrides
        if plugin is None or isinstance(chosen, bool):
            return plugin is None or bool(chosen)
        words = chosen.split(",")
        only = [word for word in words if not word.startswith("-")]
        return f"-{plugin}" not in words and (not only or plugin in only)

    def trace_key(self) -> tuple[Any, ...]:
        """What a cached trace depends on besides its arguments."""
        return (self.default_dtype_bits, self.x64_compat, self.rule_overrides)

    def __repr__(self) -> str:
        return "Config(" + ", ".join(f"{name}={getattr(self, name)!r}" for name in sorted(self._parsers)) + ")"


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
        self.config.__dict__.update(self.earlier)
        self.config._changed()


config = Config()
