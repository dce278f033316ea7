"""Pytrees in exit handlers, where optree's own handler would have cleared its registry."""

from __future__ import annotations

import subprocess
import sys

AT_EXIT = """
import atexit

def last():
    assert tree.leaves(({"b": 1, "a": [2]}, None, OrderedDict(c=3), Node(4))) == [2, 1, 3, 4]
    assert tree.map(lambda x: x + 1, (1, [2])) == (2, [3])
    assert tree.structure((1, 2)) == before
    print("seen")

atexit.register(last)  # before optree's own handler, so that it runs after that
from collections import OrderedDict, namedtuple
from corejax import tree
Node = namedtuple("Node", "x")
before = tree.structure((1, 2))
"""


def test_trees_are_flattened_in_exit_handlers_that_were_registered_before_the_import() -> None:
    run = subprocess.run([sys.executable, "-c", AT_EXIT], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("seen\n", "")
