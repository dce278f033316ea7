"""The command line: the built-in commands, and those of plugins, which are loaded only when needed."""

from __future__ import annotations

import errno
import os
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import click

from corejax.base.provenance import Provenance
from corejax.base.texts import closest, error_text, one_line, shown
from corejax.cli.list_primitives import list_primitives
from corejax.cli.output import complain, discard_output
from corejax.cli.plugins import plugins
from corejax.errors import CorejaxDeprecationWarning, CorejaxError, DuplicateRegistrationError, PluginError
from corejax.messages import source_info
from corejax.messages.homes import homes
from corejax.plugins import manager
from corejax.plugins._discovery import version_of

_CONTRIBUTED = "corejax.cli.contributed"
INTERRUPTED = 130  # the convention of shells: 128 plus the number of the signal


class ContributedCommands(click.Group):
    """The group that plugins add commands to; it refuses names that are taken."""

    def __init__(self, taken: Mapping[str, click.Command]) -> None:
        super().__init__("corejax")
        self.taken = taken

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command.

        Raises:
            PluginError: the name is malformed.
            DuplicateRegistrationError: a built-in command or another plugin's has the name.
        """
        name = name or cmd.name or ""
        if not re.fullmatch(r"[a-z0-9][\w-]*", name):
            raise PluginError(f"a command's name must be lower-case words with dashes between them, got {name!r}")
        earlier = self.taken.get(name) or self.commands.get(name)
        if earlier is not None:
            message = f"the command {name!r} is from {_owner(earlier)}; {_owner(cmd)} adds a second one"
            raise DuplicateRegistrationError(message)
        super().add_command(cmd, name)


def _owner(command: click.Command) -> str:
    return str(Provenance.of(command.callback)) if command.callback else f"{command!r}"


def _suggest_command(name: str, commands: Sequence[str]) -> str:
    """Return a suggestion that ends a message; "" if no command has a similar name or first word."""
    by_word = {command.partition("-")[0]: command for command in commands} | {c: c for c in commands}
    close = closest(name, by_word)
    return "" if close is None else f"; did you mean {by_word[close]!r}?"


class CommandLine(click.Group):
    """The built-in commands, then those of plugins."""

    def _plugin_commands(self, context: click.Context, wanted: str = "") -> Mapping[str, click.Command]:
        """Return plugins' commands; load the one that is wanted, or all if manifests do not list their names."""
        manifests = manager().usable_manifests()
        if not wanted and manifests is not None and _CONTRIBUTED not in context.meta:
            helps = {name: text for m in manifests.values() for name, text in m.commands.items()}
            return {name: click.Command(name, help=text) for name, text in helps.items()}
        if _CONTRIBUTED not in context.meta:
            group = ContributedCommands(self.commands)
            manager().add_cli_commands(group, wanted)
            context.meta[_CONTRIBUTED] = group.commands
        return context.meta[_CONTRIBUTED]  # type: ignore[no-any-return]  # set just before

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands. Plugins are loaded unless manifests list their commands."""
        return [*sorted(self.commands), *sorted(self._plugin_commands(ctx))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command. Plugins are loaded if it is not built in and a plugin may have it.

        Raises:
            click.UsageError: no command has that name.
        """
        command = self.commands.get(cmd_name)
        if command is None and cmd_name in self._plugin_commands(ctx):
            command = self._plugin_commands(ctx, cmd_name).get(cmd_name)
        if command is not None or ctx.resilient_parsing:
            return command
        home = homes("commands").get(cmd_name)
        if home is not None:
            record = next((r for r in manager().discover().values() if r.comes_from(home)), None)
            place = manager().where(record, home, "does not have it")
            raise click.UsageError(f"the command {cmd_name!r} comes with {place}", ctx)
        suggestion = _suggest_command(cmd_name, [*self.list_commands(ctx), *homes("commands")])
        raise click.UsageError(f"No such command {cmd_name!r}{suggestion or '.'}", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, with help from manifests; a plugin is loaded only when its command runs."""
        others = sorted((name, command) for name, command in self._plugin_commands(ctx).items() if not command.hidden)
        commands = [*sorted(self.commands.items()), *others]
        limit = formatter.width - 6 - max(len(name) for name, _ in commands)
        with formatter.section("Commands"):
            formatter.write_dl([(one_line(n), shown(command.get_short_help_str(limit))) for n, command in commands])

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. Show corejax's own errors as messages without tracebacks, and deprecation warnings."""
        if not sys.warnoptions:
            warnings.simplefilter("default", CorejaxDeprecationWarning)
            warnings.filterwarnings("ignore", "COREJAX_PLUGINS=")  # commands report it
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # a reader that stops early, as `head` does, is no error; click would exit with 1
            discard_output()
            ctx.exit(0)
        except KeyboardInterrupt:
            click.echo("\ninterrupted", err=True)
            ctx.exit(INTERRUPTED)
        except click.ClickException as error:
            object.__setattr__(error, "message", shown(error.message))  # click declares the attribute as final
            raise
        except CorejaxError as error:
            raise click.ClickException(shown(error_text(error))) from error

    def main(self, args: Sequence[str] | None = None, *more: Any, **options: Any) -> Any:
        """Run the command line, whose frames do not count as user code; exit with 1 if output cannot be written."""
        source_info.register_internal(os.path.dirname(click.__file__))
        if args is None:
            source_info.register_caller()
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:  # the parent process closed it
                setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  (stays open)
        try:
            try:
                return super().main(args, *more, **options)
            finally:
                sys.stdout.flush()
        except OSError as error:
            if error.filename is not None:
                raise
            discard_output()
            if error.errno != errno.EPIPE:
                complain(f"cannot write to standard output: {error.strerror}")
            sys.exit(int(error.errno != errno.EPIPE))


@click.group(cls=CommandLine, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(version_of("corejax"), prog_name="corejax", message="%(prog)s %(version)s")
def main() -> None:
    """Inspect corejax: its primitives, their rules, and the plugins that contribute them.

    Tables are formatted on a terminal, and aligned plain text (or --json) elsewhere.

    \b
    Exit codes
      0  success
      1  something is missing or failed: a plugin (`plugins`), a rule that was required (`--missing`)
      2  wrong usage: an unknown command, option, plugin, rule kind or primitive
    130  interrupted (Ctrl-C)

    \b
    Environment
      COREJAX_PLUGINS         a,b only these; -c all but this one; empty: none
      COREJAX_STRICT_PLUGINS  1: a plugin that fails raises an error
      COREJAX_RULE_OVERRIDES  0: no rule replaces another plugin's; a,b only rules of these; -c all but those of c
    """


main.add_command(list_primitives)
main.add_command(plugins)
