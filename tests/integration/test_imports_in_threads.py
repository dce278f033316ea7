"""A process whose threads are the first to import everything: none waits for another without end."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import faulthandler, threading, traceback
faulthandler.dump_traceback_later(50, exit=True)
failures = []


def use(number):
    try:
        import corejax.extend
        for name in corejax.extend.__all__[number::8]:
            getattr(corejax.extend, name)
        import corejax.numpy as jnp
        from corejax.scipy.stats import norm
        corejax.grad(lambda x: jnp.sinh(x) * norm.cdf(x))(1.0)
    except BaseException:
        failures.append(traceback.format_exc())


threads = [threading.Thread(target=use, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(*failures, sep="\\n", end="")
"""


def test_eight_threads_import_at_once() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, encoding="utf-8", check=False)
    assert (done.stdout, done.returncode) == ("", 0), done.stderr
