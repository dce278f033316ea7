"""What several threads want at once is made by one of them, while the others wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any

PATIENCE = 5.0  # seconds, longer than most traces take; then it is made twice


class OneAtATime:
    """What is being made, by key.

    Who makes something may wait for a thread that waits here, since users' functions run: so nobody waits for long.
    """

    def __init__(self) -> None:
        self._going: dict[Hashable, threading.Event] = {}

    def __call__(self, key: Hashable, find: Callable[[], Any], make: Callable[[], Any]) -> Any:
        """What `find` finds, once a thread has made it; where that failed, the next one tries.

        Args:
            key: what it is.
            find: None where it is not there.
            make: it, so that `find` finds it from then on.
        """
        done = threading.Event()
        try:
            while (other := self._going.setdefault(key, done)) is not done:
                if not other.wait(PATIENCE):
                    return make()
                if (found := find()) is not None:
                    return found
            found = find()  # another thread may have been done by now
            return make() if found is None else found
        finally:
            if self._going.get(key) is done:
                del self._going[key]
            done.set()
