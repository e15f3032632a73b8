"""Notes are values: they come back as they were written, and each is made with the values that its sentence names."""

from __future__ import annotations

import ast
import pickle
import string

import numpy as np
import pytest
from sources import parsed, source_files

from tuning.notes import DataCode, EndCode, Note, from_row, texts
from tuning.notes.note import FORMS, NoteCode, codes

NOTES = [
    EndCode.NO_STEP(),
    EndCode.RUNG_CUTOFF("asha", rung=3, score=np.float64(13.8), cutoff=12.5),
    EndCode.BEST_SO_FAR(why=EndCode.TRIALS_RUN(run=1, trials=4), best="0.5"),
    EndCode.RAISED(error="ValueError: a {brace}, a \"quote\" and 'é'"),
    EndCode.TARGET_REACHED("target", trial="00004", score=float("inf"), target=1),
    DataCode.OVER_LIMIT("max_rows", what="'a; b.csv'", count=np.int64(51), unit="rows", most=50, way_out="raise it"),
]


@pytest.mark.parametrize("note", NOTES, ids=lambda note: note.code.id)
def test_a_note_comes_back_as_it_was_written_and_says_the_same(note: Note) -> None:
    for back in (from_row(note.to_row()), pickle.loads(pickle.dumps(note))):
        assert (back.code, back.subject, dict(back.values), str(back)) == (
            note.code, note.subject, dict(note.values), str(note)
        )  # fmt: skip
        assert hash(back) == hash(note)


def test_a_note_has_no_separator_that_another_text_may_have() -> None:
    first, second = NOTES[-1], NOTES[0]
    assert texts([first, second]) == f"{first}; {second}"
    assert [from_row(each.to_row()) for each in (first, second)] == [first, second]


@pytest.mark.parametrize(
    ("count", "text"), [(1, "all 1 trial are done"), (2, "all 2 trials are done"), (1000, "all 1,000 trials are done")]
)
def test_numbers_have_their_nouns(count: int, text: str) -> None:
    assert str(EndCode.ALL_TRIALS_DONE(trials=count)) == text


def named(code: NoteCode) -> set[str]:
    """The values that a code's sentence and advice name."""
    found = set()
    for text in (code.text, code.advice):
        for _, name, form, _ in string.Formatter().parse(text):
            assert not form or form[0] in ".:,>" or form.split(" ")[0] in FORMS or form in ("d", "g"), (code, form)
            found |= {name} if name else set()
    return found - {"subject"}


def test_a_code_is_called_with_the_values_that_its_sentence_names() -> None:
    known, called = {code.name: code for code in codes().values()}, set()
    for path in source_files():
        for node in ast.walk(parsed(path)):
            is_code = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in known
            if not is_code or not getattr(node.func.value, "id", "").endswith("Code"):
                continue
            code = known[node.func.attr]
            called.add(code.name)
            if all(each.arg for each in node.keywords):
                assert {each.arg for each in node.keywords} >= named(code), (path.name, code)
    assert len(called) > 20


def test_codes_of_all_themes_have_names_of_their_own() -> None:
    names = [code.lower() for theme in NoteCode.__subclasses__() for code in theme.__members__]
    assert len(names) == len(set(names)) == len(codes())
