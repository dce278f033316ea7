"""Create a virtual environment and install into it, with the progress on one line.

    python3 tools/setup_env.py DIRECTORY ARGUMENTS-OF-PIP-INSTALL...

The program uses only the standard library and the syntax of older Pythons, so that a Python that is too old gets a
message instead of a traceback. The output of pip goes to DIRECTORY/pip.log; its end is shown if pip fails.
"""

import os
import subprocess
import sys
import time

OLDEST = (3, 11)


def say(text):
    """Print a line of progress."""
    print("[setup] " + text, flush=True)


def interpreter(directory):
    """Return the path of the environment's Python, on Windows or elsewhere."""
    folder, name = ("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")
    return os.path.join(directory, folder, name)


def usable(directory):
    """Return whether the environment exists and runs (it may have been moved, or its Python removed)."""
    python = interpreter(directory)
    return os.path.exists(python) and subprocess.call([python, "-c", "import pip"], stderr=subprocess.DEVNULL) == 0


def create(directory):
    """Create the environment; exit with a message if that fails."""
    say(f"making {directory} with Python {sys.version.split()[0]}")
    if subprocess.call([sys.executable, "-m", "venv", "--clear", directory]) != 0:
        sys.exit("[setup] no environment could be made; on Debian and Ubuntu, install the package python3-venv")


class Progress:
    """A progress line: rewritten at each step on a terminal, a dot every few steps elsewhere."""

    def __init__(self):
        self.on_terminal = sys.stdout.isatty()
        self.steps = 0

    def step(self, text):
        """Show that a step has begun."""
        self.steps += 1
        if self.on_terminal:
            sys.stdout.write(f"\r\033[K[setup] {self.steps:3} {text[:80]}")
        elif self.steps % 5 == 1:
            sys.stdout.write(".")
        sys.stdout.flush()

    def close(self):
        """Clear or end the line."""
        sys.stdout.write("\r\033[K" if self.on_terminal else "\n" if self.steps else "")
        sys.stdout.flush()


def install(directory, arguments, log_path):
    """Run pip once, so that it resolves all requirements together, and return its exit status."""
    command = [interpreter(directory), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    environment = dict(os.environ, PYTHONUNBUFFERED="1", PIP_PROGRESS_BAR="off")
    progress = Progress()
    with open(log_path, "w") as log:
        pip = subprocess.Popen(
            command + arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )
        for line in pip.stdout:
            log.write(line)
            if line.startswith(("Obtaining", "Collecting", "Building", "Installing")):
                progress.step(" ".join(line.split()[:3]))
        status = pip.wait()
    progress.close()
    return status


def main(arguments):
    """Create the environment if necessary, and install into it."""
    if sys.version_info < OLDEST:
        found = f"this is {sys.version.split()[0]} ({sys.executable})"
        sys.exit(f"[setup] corejax needs Python 3.11 or newer and {found}; name one: make PYTHON=python3.11 ...")
    if len(arguments) < 2:
        sys.exit(__doc__)
    directory, requirements = arguments[0], arguments[1:]
    log_path = os.path.join(directory, "pip.log")
    started = time.time()
    if not usable(directory):
        create(directory)
    say(f"installing into {directory} (minutes the first time; details in {log_path})")
    status = install(directory, requirements, log_path)
    if status != 0:
        with open(log_path) as log:
            sys.stdout.writelines(log.readlines()[-30:])
        sys.exit(f"[setup] pip failed with status {status}; all of its output is in {log_path}")
    say(f"ready after {time.time() - started:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
