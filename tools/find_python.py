"""Print the path of a working Python of a given version, or nothing: `python3 tools/find_python.py 3.13`.

Looks along PATH, then among pyenv's versions. Each candidate is run, since pyenv puts names on PATH that only
say "not selected here".
"""

import glob
import os
import subprocess
import sys


def on_path(version):
    for directory in os.environ.get("PATH", "").split(os.pathsep):
        yield os.path.join(directory, "python" + version)
        yield os.path.join(directory, "python3")


def of_pyenv(version):
    try:
        root = subprocess.check_output(["pyenv", "root"], stderr=subprocess.DEVNULL, text=True).strip()
    except (OSError, subprocess.CalledProcessError):
        return
    for pattern in (version, version + ".*"):
        for prefix in sorted(glob.glob(os.path.join(root, "versions", pattern)), key=patch_release, reverse=True):
            yield os.path.join(prefix, "bin", "python" + version)


def patch_release(prefix):
    last = os.path.basename(prefix).split(".")[-1]
    return int(last) if last.isdigit() else -1


def is_version(path, version):
    """Whether `path` runs, is of this version, and can make environments."""
    if not os.access(path, os.X_OK):
        return False
    code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    try:
        answer = subprocess.check_output([path, "-c", code], stderr=subprocess.DEVNULL, text=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return answer.strip() == version


def main(version):
    for candidates in (on_path(version), of_pyenv(version)):
        for path in candidates:
            if is_version(path, version):
                print(path)
                return


if __name__ == "__main__":
    main(sys.argv[1])
