"""What runs find out, as values with codes, and the catalogue of their sentences."""

from tuning.notes.comparisons import ComparisonCode
from tuning.notes.data import DataCode
from tuning.notes.ends import EndCode
from tuning.notes.files import FileCode
from tuning.notes.fits import FitCode
from tuning.notes.note import Note, NoteCode, Shown, codes, codes_shown, from_plain, from_row, plain, texts
from tuning.notes.plans import PlanCode
from tuning.notes.pool import PoolCode
from tuning.notes.serving import ServingCode

__all__ = [
    "ComparisonCode",
    "DataCode",
    "EndCode",
    "FileCode",
    "FitCode",
    "Note",
    "NoteCode",
    "PlanCode",
    "PoolCode",
    "ServingCode",
    "Shown",
    "codes",
    "codes_shown",
    "from_plain",
    "from_row",
    "plain",
    "texts",
]
