"""Who raised something: notes on functions of users, and the frames that led to the library."""

from __future__ import annotations

from typing import Any

import corejax
from corejax.extend import Primitive, attributed_rule, note_origin, user_frames
from corejax.source_info import capture

called_p = Primitive("attribution.called", impl=lambda x: x, abstract_eval=lambda x: x)


def test_a_note_on_a_users_function() -> None:
    error = ValueError("no")
    note_origin(error, called_p, "the callback 'f'")
    note_origin(error, called_p, "another one")
    (note,) = error.__notes__
    assert note.startswith(f"This came out of the callback 'f', called at {__file__}:")
    assert attributed_rule(error) == ("attribution.called", None)


def test_the_line_may_be_another_one() -> None:
    def elsewhere() -> Any:
        return capture()

    error = ValueError("no")
    note_origin(error, called_p, "it", elsewhere())
    assert "(elsewhere)" in error.__notes__[0]


def test_an_exception_that_takes_no_attributes() -> None:
    class Closed(Exception):
        __slots__ = ()

    error = Closed()
    note_origin(error, called_p, "it")
    assert "This came out of it" in error.__notes__[0]


def test_frames_of_users() -> None:
    found: list[Any] = []

    def within(x: Any) -> Any:
        found.extend((user_frames(), user_frames(filtered=False)))
        return x

    corejax.make_jaxpr(within)(1.0)
    own, every = ([frame.f_code.co_name for frame in frames] for frames in found)
    assert own[:2] == ["within", "test_frames_of_users"]
    assert every[0] == "within" and every.index("test_frames_of_users") > 1
