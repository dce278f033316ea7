"""The command line itself: the built-in commands, and those that plugins add, loaded only when asked for."""

from __future__ import annotations

import contextlib
import difflib
import errno
import os
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import click

from corejax.base.provenance import Provenance
from corejax.base.texts import error_text, one_line, shown
from corejax.cli.list_primitives import list_primitives
from corejax.cli.output import complain
from corejax.cli.plugins import plugins
from corejax.errors import CorejaxDeprecationWarning, CorejaxError, DuplicateRegistrationError, PluginError
from corejax.messages import source_info
from corejax.messages.homes import homes
from corejax.plugins import manager
from corejax.plugins._missing_names import where

_CONTRIBUTED = "corejax.cli.contributed"
INTERRUPTED = 130  # as shells have it: 128 and the number of the signal


class ContributedCommands(click.Group):
    """What plugins add commands to; refuses names that are taken."""

    def __init__(self, taken: Mapping[str, click.Command]) -> None:
        super().__init__("corejax")
        self.taken = taken

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command.

        Raises:
            PluginError: it is no name for a command.
            DuplicateRegistrationError: there is one of that name, built in or another plugin's.
        """
        name = name or cmd.name or ""
        if not re.fullmatch(r"[a-z0-9][\w-]*", name):
            raise PluginError(f"a command's name is lower-case words with dashes between them, got {name!r}")
        earlier = self.taken.get(name) or self.commands.get(name)
        if earlier is not None:
            raise DuplicateRegistrationError(
                f"the command {name!r} is from {_owner(earlier)}; {_owner(cmd)} adds a second one"
            )
        super().add_command(cmd, name)


def _owner(command: click.Command) -> str:
    return str(Provenance.of(command.callback)) if command.callback else f"{command!r}"


def _command_meant(name: str, commands: Sequence[str]) -> str:
    """Return a suggestion that ends a message; "" if no command has a similar name, or first word of its name."""
    by_word = {command.partition("-")[0]: command for command in commands} | {c: c for c in commands}
    close = difflib.get_close_matches(name, by_word, 1)
    return f"; did you mean {by_word[close[0]]!r}?" if close else ""


class CommandLine(click.Group):
    """The built-in commands, then those of plugins."""

    def _others(self, context: click.Context, *, load: bool = False) -> Mapping[str, click.Command]:
        """Return plugins' commands; if manifests name all of them and none is to run, only their names and help."""
        manifests = manager().usable_manifests()
        if not load and manifests is not None and _CONTRIBUTED not in context.meta:
            helps = {name: text for m in manifests.values() for name, text in m.commands.items()}
            return {name: click.Command(name, help=text) for name, text in helps.items()}
        if _CONTRIBUTED not in context.meta:
            group = ContributedCommands(self.commands)
            manager().add_cli_commands(group)
            context.meta[_CONTRIBUTED] = group.commands
        return context.meta[_CONTRIBUTED]  # type: ignore[no-any-return]

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands; loads plugins whose manifests do not name theirs."""
        return [*sorted(self.commands), *sorted(self._others(ctx))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; plugins are loaded for names that are not built in and that some plugin may have.

        Raises:
            click.UsageError: there is no such command.
        """
        found = self.commands.get(cmd_name)
        if found is None and cmd_name in self._others(ctx):
            found = self._others(ctx, load=True).get(cmd_name)
        if found is not None or ctx.resilient_parsing:
            return found
        home = homes("commands").get(cmd_name)
        if home is not None:
            place = where(manager(), home, "does not have it")
            raise click.UsageError(f"the command {cmd_name!r} comes with {place}", ctx)
        meant = _command_meant(cmd_name, [*self.list_commands(ctx), *homes("commands")])
        raise click.UsageError(f"No such command {cmd_name!r}{meant or '.'}", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, with the help that manifests give; a plugin is loaded when its command runs."""
        others = sorted((name, command) for name, command in self._others(ctx).items() if not command.hidden)
        commands = [*sorted(self.commands.items()), *others]
        limit = formatter.width - 6 - max(len(name) for name, _ in commands)
        with formatter.section("Commands"):
            formatter.write_dl([(one_line(n), shown(command.get_short_help_str(limit))) for n, command in commands])

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; corejax's own errors are messages, not tracebacks, and what plugins should mend is shown."""
        if not sys.warnoptions:
            warnings.simplefilter("default", CorejaxDeprecationWarning)
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("\ninterrupted", err=True)
            ctx.exit(INTERRUPTED)
        except click.ClickException as error:
            object.__setattr__(error, "message", shown(error.message))  # final for its readers
            raise
        except CorejaxError as error:
            raise click.ClickException(shown(error_text(error))) from error

    def main(self, args: Sequence[str] | None = None, *more: Any, **options: Any) -> Any:
        """Run the command line; its own frames, and the script's that calls it, are no user's lines.

        Where its output cannot be written, it says so in a sentence and exits with 1.
        """
        source_info.register_internal(os.path.dirname(click.__file__))
        if args is None:
            source_info.register_caller()
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:  # closed by whoever started the command
                setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  (kept till the end)
        try:
            try:
                return super().main(args, *more, **options)
            finally:
                sys.stdout.flush()
        except OSError as error:
            if error.filename is not None:
                raise
            with contextlib.suppress(OSError, ValueError):  # Python would try to write once more when it ends
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if error.errno != errno.EPIPE:  # a reader that has read enough is no news
                complain(f"cannot write to standard output: {error.strerror}")
            sys.exit(1)


@click.group(cls=CommandLine, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="corejax", prog_name="corejax", message="%(prog)s %(version)s")
def main() -> None:
    """Look into corejax: its primitives, their rules, and the plugins that contribute them.

    Tables are for eyes on a terminal and for scripts elsewhere (aligned plain text, or --json).

    \b
    Exit codes
      0  all is well
      1  something is missing or failed: a plugin (`plugins`), a rule that was asked for (`--missing`)
      2  wrong usage: no such command, option, plugin, rule kind or primitive
    130  interrupted (Ctrl-C)

    \b
    Environment
      COREJAX_PLUGINS         a,b only these; -c all but this one; empty: none
      COREJAX_STRICT_PLUGINS  1: a plugin that fails is an error
      COREJAX_RULE_OVERRIDES  0: no rule replaces another plugin's; a,b only theirs; -c all but that one's
    """


main.add_command(list_primitives)
main.add_command(plugins)
