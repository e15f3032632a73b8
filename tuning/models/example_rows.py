"""A few rows as they came, as a saved model holds them."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd

from tuning.basics.documents import Json


def example_json(frame: pd.DataFrame | None) -> dict[str, object] | None:
    """As plain values; None where there are none."""
    if frame is None:
        return None
    kinds = set(frame.dtypes.tolist())
    if all(isinstance(kind, np.dtype) and kind.kind in "iuf" for kind in kinds):  # pandas takes milliseconds
        rows = frame.to_numpy(dtype=None if len(kinds) == 1 else object).tolist()
        data = [[value if math.isfinite(value) else None for value in row] for row in rows]
        return {"columns": frame.columns.tolist(), "data": data}
    plain = pd.DataFrame({name: each.map(_readable) if each.dtype == object else each for name, each in frame.items()})
    text = plain.to_json(orient="split", index=False, date_format="iso", default_handler=str, double_precision=15)
    return dict(json.loads(text))


def _readable(value: object) -> object:
    return str(value) if isinstance(value, bytes) else value


def read_example(rows: Json | None) -> pd.DataFrame | None:
    """Return the rows that `example_json` wrote."""
    return None if rows is None else pd.DataFrame(rows["data"], columns=rows["columns"])
