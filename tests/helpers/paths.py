"""Where things are in this checkout."""

from pathlib import Path

HELPERS = Path(__file__).resolve().parent
TESTS = HELPERS.parent
ROOT = TESTS.parent
FIXTURES = TESTS / "fixtures"


def shared_data(checkout: Path = ROOT) -> Path | None:
    """The folder `shared/data` of real data sets, beside a checkout or one level higher; None without one."""
    places = (place / "shared" / "data" for place in (checkout.parent, checkout.parent.parent))
    return next((place for place in places if place.is_dir()), None)
