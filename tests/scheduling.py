"""With `-n`, a file's tests run in one process: what a file computes once, and its module fixtures, are not made twice.

Of few processes one has all tests of a directory that shares a process of its own.
"""

from __future__ import annotations

from xdist.scheduler.loadscope import LoadScopeScheduling

TOGETHER = ("tests/parallel/",)  # `own_process(shared=True)`
FEW = 4


class ByFile(LoadScopeScheduling):
    """Gives out files, in their order."""

    def _split_scope(self, nodeid: str) -> str:
        if self.numnodes <= FEW and nodeid.startswith(TOGETHER):
            return TOGETHER[0]
        return nodeid.partition("::")[0]
