"""Print the path of a working Python of a given version, or nothing: `python3 tools/find_python.py 3.13`.

The search covers PATH, then the versions of pyenv. Each candidate is run, because pyenv puts commands on PATH that
only print that the version is not selected.
"""

import glob
import os
import subprocess
import sys


def on_path(version):
    """Yield candidate paths in the directories of PATH."""
    for directory in os.environ.get("PATH", "").split(os.pathsep):
        yield os.path.join(directory, "python" + version)
        yield os.path.join(directory, "python3")


def of_pyenv(version):
    """Yield candidate paths among the versions of pyenv, the newest patch release first."""
    try:
        root = subprocess.check_output(["pyenv", "root"], stderr=subprocess.DEVNULL, text=True).strip()
    except (OSError, subprocess.CalledProcessError):
        return
    for pattern in (version, version + ".*"):
        for prefix in sorted(glob.glob(os.path.join(root, "versions", pattern)), key=patch_release, reverse=True):
            yield os.path.join(prefix, "bin", "python" + version)


def patch_release(prefix):
    """Return the patch release of a directory such as `versions/3.12.4`, or -1 if it has none."""
    last = os.path.basename(prefix).split(".")[-1]
    return int(last) if last.isdigit() else -1


def is_version(path, version):
    """Return whether `path` runs, has this version, and can create virtual environments."""
    if not os.access(path, os.X_OK):
        return False
    code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    try:
        answer = subprocess.check_output([path, "-c", code], stderr=subprocess.DEVNULL, text=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return answer.strip() == version


def main(version):
    """Print the first working candidate."""
    for candidates in (on_path(version), of_pyenv(version)):
        for path in candidates:
            if is_version(path, version):
                print(path)
                return


if __name__ == "__main__":
    main(sys.argv[1])
