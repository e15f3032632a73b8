"""One word for one thing: what docs/architecture.md calls otherwise has no second name in code or pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from paths import ROOT

# Names of before, and what is said now; words of English are refused as names only, with their capital.
RETIRED = {
    "(?i:Workshop)": "worker context",
    "Flight": "progress marker",
    "flights/": "in_progress/",
    "last words": "the stack at the crash",
    "Bench": "open studies",
    "(?i:Shelf)": "shared tables",
    "Begun": "owned run",
    "Standing": "recorded state",
    "survey": "read_state",
    "Filing": "background writer",
    "(?i:Travelling)": "portable function",
    "StudyLoop": "recorded study",
    "LiveStudy": "spread study",
}
# Where an epoch could only be the ownership of a run, which is a term; elsewhere models train by epochs.
OWNERSHIP = ["records", "runs", "execution", "driver", "tracking"]
KEPT = "TERMS_OF_0_1 ="  # the name of a folder in runs of version 0.1


def texts() -> list[Path]:
    code = [path for top in ("tuning", "tests") for path in (ROOT / top).rglob("*.py")]
    pages = (ROOT / "docs").rglob("*.md")
    return [path for path in [*code, *pages, ROOT / "README.md"] if path != Path(__file__).resolve()]


@pytest.mark.parametrize("word", RETIRED)
def test_a_retired_word_is_gone(word: str) -> None:
    pattern = re.compile(rf"\b{word}(?!\w)")
    found = [str(path.relative_to(ROOT)) for path in texts() if pattern.search(path.read_text(encoding="utf-8"))]
    assert found == [], f"say {RETIRED[word]}"


def test_a_run_has_terms_and_a_model_epochs() -> None:
    files = [path for package in OWNERSHIP for path in (ROOT / "tuning" / package).rglob("*.py")]
    found = [
        f"{path.name}: {line.strip()}"
        for path in [*files, ROOT / "docs" / "reliability.md"]
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search("epoch", line, re.IGNORECASE) and not line.startswith(KEPT)
    ]
    assert found == []
