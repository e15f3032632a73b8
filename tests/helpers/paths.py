"""Where things are in this checkout."""

from pathlib import Path

HELPERS = Path(__file__).resolve().parent
TESTS = HELPERS.parent
ROOT = TESTS.parent
FIXTURES = TESTS / "fixtures"
