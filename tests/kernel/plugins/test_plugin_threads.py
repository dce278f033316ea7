"""Loading from several threads: imports and the lock around loading do not wait for each other in a circle."""

from __future__ import annotations

import importlib
import threading
import time

import pytest

from corejax.plugins._load_lock import LoadLock
from corejax.plugins._plugin_manager import PluginManager
from tests.kernel.plugin_sites import Site

# One thread imports corejax.toy: it has Python's locks of that import and then needs the plugins loaded. The other
# one loads the plugins, and the first of them imports corejax.toy itself.
CIRCLE = """
import faulthandler, sys, threading, time
faulthandler.dump_traceback_later(20, exit=True)
import corejax
from corejax.plugins import manager
from corejax.plugins._finder import NamespaceFinder

loading, importing = threading.Event(), threading.Event()
find_spec = NamespaceFinder.find_spec

def watched_find_spec(self, name, *rest):
    if name == "corejax.toy":
        importing.set()
    return find_spec(self, name, *rest)

def meet():
    loading.set()
    assert importing.wait(10)

NamespaceFinder.find_spec = watched_find_spec
sys.meet = meet
found = {}

def first():
    assert loading.wait(10)
    import corejax.toy
    found["import"] = corejax.toy.twice

def second():
    manager().load()
    found["load"] = sorted((r.name, r.status) for r in manager().records.values())

threads = [threading.Thread(target=f, daemon=True) for f in (first, second)]
for thread in threads: thread.start()
for thread in threads: thread.join(15)
print(*(f"{key} {found.get(key) is not None}" for key in ("import", "load")), found.get("load"))
"""


def test_import_and_load_in_two_threads_do_not_deadlock(site: Site) -> None:
    site.add("acme", "import sys\nsys.meet()\nimport corejax.toy\n@hookimpl\ndef corejax_register_primitives(): pass")
    site.install("toy_ops")
    done = site.run(CIRCLE)
    assert done.stdout == "import True load True [('acme', 'loaded'), ('toy_ops', 'loaded')]\n", done.stderr


# One thread imports a plugin's module directly, which uses an operator of arrays and so needs the plugins loaded; the
# other one loads the plugins, and the first of them imports that module.
CIRCLE_OF_MODULES = """
import faulthandler, threading, time
faulthandler.dump_traceback_later(20, exit=True)
import corejax, numpy as np
from corejax.plugins import manager

corejax.started, corejax.loading = threading.Event(), threading.Event()
found = {}

def first():
    import acme_ops
    found["import"] = acme_ops.answer

def second():
    assert corejax.started.wait(10)
    manager().load()
    found["load"] = sorted((r.name, r.status) for r in manager().records.values())

threads = [threading.Thread(target=f, daemon=True) for f in (first, second)]
for thread in threads: thread.start()
for thread in threads: thread.join(15)
print(found)
"""


def test_a_module_that_needs_plugins_while_it_is_imported(site: Site) -> None:
    (site.path / "acme_ops.py").write_text(
        "import corejax, numpy as np\n"
        "corejax.started.set()\n"
        "assert corejax.loading.wait(10)\n"
        "answer = hasattr(corejax.Array(np.ones(2)), 'nobodys_method')\n"
    )
    site.add(
        "acme",
        """
        import corejax
        corejax.loading.set()
        import acme_ops
        @hookimpl
        def corejax_register_primitives(): pass
        """,
    )
    site.install("toy_ops")
    done = site.run(CIRCLE_OF_MODULES)
    wanted = {"import": False, "load": [("acme", "loaded"), ("toy_ops", "loaded")]}
    assert done.stdout == f"{wanted}\n", done.stderr


def test_failure_in_one_thread_takes_back_nothing_of_the_other(site: Site, fresh: PluginManager) -> None:
    """A primitive that a thread of the user's registers while a plugin loads and fails is the user's."""
    site.add(
        "acme",
        """
        import threading
        def work():
            extend.Primitive("mine.p", impl=lambda x: x)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        extend.Primitive("acme.p", impl=lambda x: x)
        raise ImportError("no libacme")
        """,
    )
    fresh.load()
    primitives = importlib.import_module("corejax.core.primitive").primitives
    assert "mine.p" in primitives and "acme.p" not in primitives


# -- the lock ----------------------------------------------------------------------------------------------------------


def test_lock_is_reentrant_and_exclusive() -> None:
    lock, order = LoadLock(), []

    def other() -> None:
        with lock:
            order.append("other")

    with lock, lock:
        thread = threading.Thread(target=other)
        thread.start()
        time.sleep(0.1)
        order.append("mine")
    thread.join(10)
    assert order == ["mine", "other"] and lock._holders == []


def test_lock_is_released_by_an_exception() -> None:
    lock = LoadLock()
    with pytest.raises(ZeroDivisionError), lock:
        raise ZeroDivisionError
    assert lock._holders == []
