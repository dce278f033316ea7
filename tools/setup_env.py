"""Make a virtual environment and install into it, saying on one line what goes on.

    python3 tools/setup_env.py DIRECTORY ARGUMENTS-OF-PIP-INSTALL...

Standard library only, and the syntax of older Pythons, so a too old one gets a sentence, no traceback.
pip's own output goes to DIRECTORY/pip.log; its end is shown if pip fails.
"""

import os
import subprocess
import sys
import time

OLDEST = (3, 11)


def say(text):
    print("[setup] " + text, flush=True)


def interpreter(directory):
    """The environment's Python, on whatever system."""
    folder, name = ("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")
    return os.path.join(directory, folder, name)


def usable(directory):
    """Whether there is an environment that still runs (it may have been moved, or its Python removed)."""
    python = interpreter(directory)
    return os.path.exists(python) and subprocess.call([python, "-c", "import pip"], stderr=subprocess.DEVNULL) == 0


def create(directory):
    say(f"making {directory} with Python {sys.version.split()[0]}")
    if subprocess.call([sys.executable, "-m", "venv", "--clear", directory]) != 0:
        sys.exit("[setup] no environment could be made; on Debian and Ubuntu, install the package python3-venv")


class Progress:
    """One line that is rewritten on a terminal, a dot now and then elsewhere."""

    def __init__(self):
        self.on_terminal = sys.stdout.isatty()
        self.steps = 0

    def step(self, text):
        self.steps += 1
        if self.on_terminal:
            sys.stdout.write(f"\r\033[K[setup] {self.steps:3} {text[:80]}")
        elif self.steps % 5 == 1:
            sys.stdout.write(".")
        sys.stdout.flush()

    def close(self):
        sys.stdout.write("\r\033[K" if self.on_terminal else "\n" if self.steps else "")
        sys.stdout.flush()


def install(directory, arguments, log_path):
    """Run pip, in one go so that it resolves everything together; returns its exit status."""
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
