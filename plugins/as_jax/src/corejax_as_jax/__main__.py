"""`python -m corejax_as_jax (prog.py | -m module | -c code) args...`: run a program with corejax as jax."""

from __future__ import annotations

import os
import runpy
import sys

from corejax_as_jax import install

USAGE = "usage: python -m corejax_as_jax (prog.py | -m module | -c code) [arguments...]"


def main(arguments: list[str]) -> None:
    """Run a program as Python's own command line does.

    Args:
        arguments: the program's file, or an option with its value, followed by the program's arguments.
    """
    option, *rest = arguments or ["-h"]
    if option in ("-h", "--help") or (option in ("-m", "-c") and not rest):
        print(USAGE, file=sys.stdout if option in ("-h", "--help") else sys.stderr)
        sys.exit(0 if option in ("-h", "--help") else 2)
    if option not in ("-m", "-c") and not os.path.exists(option):
        sys.exit(f"python -m corejax_as_jax: no such file: {option}")
    install()
    if option == "-m":
        sys.argv = rest
        sys.path[0] = os.getcwd()
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif option == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.path[0] = ""
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__", "__builtins__": __builtins__})
    else:
        sys.argv = arguments
        sys.path[0] = os.path.dirname(os.path.abspath(option))
        runpy.run_path(option, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
