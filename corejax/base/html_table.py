"""A matrix as the rows of an HTML table, for notebooks."""

from __future__ import annotations

from typing import Any

import numpy as np


def html_rows(matrix: np.ndarray[Any, Any]) -> str:
    """Rows of an HTML table; of more than eleven rows or columns the first and last five, the others as dots."""

    def shortened(cells: list[str], dots: str) -> str:
        return "".join(cells if len(cells) <= 11 else [*cells[:5], dots, *cells[-5:]])

    def shown(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """What of an axis is shown, and one element more where there are dots."""
        return values if len(values) <= 11 else np.concatenate([values[:6], values[-6:]])

    digits = np.get_printoptions()["precision"]
    part = shown(shown(matrix).T).T
    if part.dtype.kind == "V":  # of ml_dtypes
        part = part.astype(np.float32)
    rows = []
    for row in part.tolist():
        cells = [f"<td>{x:.{digits}g}</td>" if isinstance(x, float) else f"<td>{x}</td>" for x in row]
        rows.append(f"<tr>{shortened(cells, '<td>…</td>')}</tr>")
    return shortened(rows, "<tr><td>⋮</td></tr>")
