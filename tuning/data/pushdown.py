"""Keys pushed down into files that pyarrow reads as a dataset: few other rows are read."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.dataset as ds

from tuning.data.keys import Key, written_forms

NO_UTF8 = re.compile(r"\\(x[89a-f]|ud[89a-f])")  # what a key shows of bytes that are no UTF-8, and of half characters


def push_down(schema: pa.Schema, by: Sequence[str], keys: Sequence[Key]) -> ds.Expression | None:
    """A filter that lets all rows of the keys pass, and few others; None where the types allow none."""
    found: ds.Expression | None = None
    for position, name in enumerate(by):
        if schema.get_field_index(name) < 0:
            continue
        kind = schema.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            continue  # text and number round trips are exact for these; others are selected after reading
        texts = {key[position] for key in keys}
        if any(NO_UTF8.search(text) for text in texts if text is not None):
            continue  # in the file it may be that byte
        wanted = sorted(text for text in texts if text is not None)
        if _is_text(kind):
            wanted = [form for text in wanted for form in written_forms(text)]
        try:
            values = pa.array(wanted, pa.string()).cast(kind)
        except pa.ArrowInvalid:
            continue
        here = ds.field(name)
        part = here.isin(values)
        if None in texts:
            part = part | here.is_null()
            part = part | (here == "") if _is_text(kind) else part
        found = part if found is None else found & part
    return found


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
