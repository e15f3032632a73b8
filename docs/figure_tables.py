"""The lists of docs/records.md: what each column means, and where it is shown.

python docs/figure_tables.py     # writes them into the page; run it at the top of the repository
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import pyarrow as pa

from tuning.records.columns import FLOAT, TEXT, Figure
from tuning.records.figures import COMPUTED, STUDY_FIGURES, STUDY_SCHEMA, TRIAL_FIGURES, TRIAL_SCHEMA, named

PAGE = "docs/records.md"


def written(text: str) -> str:
    """The page's text with the lists between its markers."""
    trials, studies = named(TRIAL_FIGURES), named(STUDY_FIGURES)
    tables = {
        "trials": [trials[name] for name in TRIAL_SCHEMA.names],
        "studies": [studies[name] for name in STUDY_SCHEMA.names if studies[name] != trials.get(name)],
        "leaderboard": chain.from_iterable(COMPUTED.values()),
    }
    for mark, figures in tables.items():
        before, _, rest = text.partition(f"<!-- {mark} -->\n")
        text = f"{before}<!-- {mark} -->\n{_list(figures)}\n<!-- /{mark} -->{rest.partition(f'<!-- /{mark} -->')[2]}"
    return text


def _list(figures: Iterable[Figure]) -> str:
    return "\n".join(f"- `{each.name}` ({_type_text(each.type)}): {each.what}{_places(each)}" for each in figures)


def _places(figure: Figure) -> str:
    return f" → {', '.join(figure.shown)}" if figure.shown else ""


def _type_text(kind: pa.DataType) -> str:
    if pa.types.is_map(kind):
        return f"map {_type_text(kind.key_type)} to {_type_text(kind.item_type)}"
    if pa.types.is_list(kind):
        return f"list of {_type_text(kind.value_type)}"
    if pa.types.is_struct(kind):
        return f"({', '.join(f'{each.name} {_type_text(each.type)}' for each in kind)})"
    return {TEXT: "text", FLOAT: "float64"}.get(kind, str(kind))


if __name__ == "__main__":
    page = Path(PAGE)
    page.write_text(written(page.read_text(encoding="utf-8")), encoding="utf-8")
