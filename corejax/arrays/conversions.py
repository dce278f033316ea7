"""Conversion of an array's value to Python numbers, lists, bytes and text, and to other libraries' arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import numpy as np

from corejax import dtypes
from corejax.core.avals import ShapedArray, numbers_of

T = TypeVar("T")


class HostConversions:
    """The methods of `Array` that use only its value on the host."""

    __slots__ = ()

    aval: ShapedArray
    _fetch: Callable[[], np.ndarray]
    _is_here: Callable[[], bool]

    def _require_numbers(self, what: str) -> None:
        if self.aval.dtype.names is not None:
            raise dtypes.no_numbers(self.aval.dtype, what)

    def item(self, *args: int) -> Any:
        """Return the only element, or the element at an index, as a Python scalar."""
        self._require_numbers("item")
        return self._fetch().item(*args)

    def tolist(self) -> Any:
        """Return the value as nested Python lists of Python scalars."""
        self._require_numbers("tolist")
        return self._fetch().tolist()

    def tobytes(self, order: Literal["C", "F", "A"] = "C") -> bytes:
        """Return the bytes of the elements."""
        return self._fetch().tobytes(order)

    def __bool__(self) -> bool:
        self._require_numbers("bool")
        if self.aval.size != 1:
            raise ValueError(
                f"the truth value of an array of shape {self.aval.shape} is ambiguous; use .any() or .all(), or a "
                "conditional on elements"
            )
        return bool(self._fetch().reshape(())[()])

    def _scalar(self, kind: Callable[[Any], T], what: str) -> T:
        self._require_numbers(getattr(kind, "__name__", "a number"))
        if self.aval.size != 1:
            raise TypeError(f"only arrays of size 1 convert to a Python scalar, this one has shape {self.aval.shape}")
        return kind(self._fetch().reshape(()).item())

    def __index__(self) -> int:
        if self.aval.ndim or self.aval.dtype.kind not in "iub" or self.aval.dtype.kind == "b":
            raise TypeError(f"only integer scalar arrays convert to an index, this one is {self.aval.str_short()}")
        return self._fetch().item()  # type: ignore[no-any-return]  # an integer, by its dtype

    def __format__(self, spec: str) -> str:
        number = self.aval.ndim == 0 and self.aval.dtype.names is None
        if not number and spec and spec[-1] in "bcdeEfFgGnoxX%":
            raise TypeError(f"format {spec!r} is for one number, not for {self.aval.str_short()}; format its elements")
        return format(self._fetch()[()], spec) if number else format(str(self), spec)

    __hash__ = None  # type: ignore[assignment]  # they are compared elementwise

    def __repr__(self) -> str:
        if self.aval.dtype.names is not None:
            kind = dtypes.short_name(self.aval.dtype)
            return f"Array({self.aval.shape}, dtype={kind}) overlaying:\n{numbers_of(self._fetch())}"
        if not self._is_here():
            return f"Array(shape={self.aval.shape}, dtype={self.aval.dtype.name})"
        text = np.array2string(self._fetch(), separator=", ", prefix="Array(")
        weak = ", weak_type=True" if self.aval.weak_type else ""
        shape = f", shape={self.aval.shape}" if self.aval.size == 0 else ""
        return f"Array({text}{shape}, dtype={self.aval.dtype.name}{weak})"

    def _repr_html_(self) -> str:
        import html  # imported here because only notebooks need it

        head = f"<code>{html.escape(self.aval.str_short(short_dtypes=False))}</code>"
        if not 1 <= self.aval.ndim <= 2 or self.aval.size == 0 or self.aval.dtype.names is not None:
            return f"{head}<pre>{html.escape(str(self))}</pre>"
        return f"{head}<table>{_html_rows(np.atleast_2d(self._fetch()))}</table>"

    def __str__(self) -> str:
        plain = self.aval.dtype.names is None and self._is_here()
        return str(self._fetch()) if plain else repr(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        host = self._fetch()
        self._require_numbers("numpy.asarray")
        if dtype is not None and np.dtype(dtype) != host.dtype:
            if copy is False:
                raise ValueError(f"cannot convert {self.aval.str_short()} to {np.dtype(dtype)} without a copy")
            return host.astype(dtype)
        if copy:
            return host.copy()
        return _sealed(host)

    def __buffer__(self, flags: int) -> memoryview:
        """Return a read-only view of the value; Python 3.12 and later call it for `memoryview(x)`.

        Raises:
            BufferError: the buffer protocol does not support the dtype, such as bfloat16.
        """
        try:
            host: Any = self._fetch()
            return memoryview(host).toreadonly()
        except ValueError:
            raise BufferError(
                f"Python's buffers do not support {self.aval.dtype.name}; use x.view('uint16') for its bits"
            ) from None

    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Export the value to another library: a read-only view if it supports those (DLPack 1.0), else a copy.

        Raises:
            BufferError: `copy=False` but a copy is needed, `dl_device` is not the host, or DLPack lacks the dtype.
        """
        if dl_device not in (None, self.__dlpack_device__()):
            raise BufferError(
                f"__dlpack__: arrays are exported from the host; dl_device has to be (1, 0), got {dl_device}"
            )
        knows_read_only = max_version is not None and max_version[0] >= 1
        if copy is False and not knows_read_only:
            raise BufferError(
                "__dlpack__: arrays are immutable, and a consumer of DLPack before 1.0 (max_version=None) could write "
                "to the memory; copy=False needs max_version=(1, 0)"
            )
        if self.aval.dtype.kind == "V":
            raise BufferError(
                f"__dlpack__: NumPy does not export {self.aval.dtype.name}; export its bits, x.view('uint16')"
            )
        host = np.array(self._fetch()) if copy or not knows_read_only else _sealed(self._fetch())
        return host.__dlpack__(stream=stream, max_version=max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # kDLCPU: the host view is exported


def _html_rows(matrix: np.ndarray) -> str:
    """Return the rows of an HTML table; of more than eleven rows or columns, show the first and last five and dots."""

    def shortened(text_of: Callable[[Any], str], items: Any, dots: str) -> str:
        if len(items) <= 11:
            return "".join(map(text_of, items))
        return "".join([*map(text_of, items[:5]), dots, *map(text_of, items[-5:])])

    def line(row: np.ndarray) -> str:
        return f"<tr>{shortened(lambda x: f'<td>{np.array2string(np.asarray(x))}</td>', row, '<td>…</td>')}</tr>"

    return shortened(line, matrix, "<tr><td>⋮</td></tr>")


def _sealed(host: Any) -> np.ndarray:
    """Return a view that cannot be made writable again, because its base is a read-only buffer."""
    try:
        return np.asarray(memoryview(host).toreadonly())
    except ValueError:  # the buffer protocol does not support the dtype, such as bfloat16
        bits = host.view(f"u{host.itemsize}")
        return np.asarray(memoryview(bits).toreadonly()).view(host.dtype)
