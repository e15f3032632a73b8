"""What models lose on new rows, found out where they may end their process."""

from __future__ import annotations

from pathlib import Path

import pytest
from shop_weeks import FLAT, NAME, ShopWeeks, rows

from tuning.champions.comparison import RowComparison
from tuning.data.child_process import ChildProcess
from tuning.refresh.new_losses import ComparedModels, losses_in
from tuning.refresh.unseen_rows import UnseenRows

ENDS = """
import os, signal

def prepare(frame):
    if frame["x"].max() > 1000:
        os.kill(os.getpid(), signal.SIGKILL)
    return frame
"""


@pytest.mark.long
def test_a_model_that_ends_its_process_costs_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuning.refresh.new_losses.ATTEMPTS", 1)  # each starts a process anew
    (tmp_path / "ends.py").write_text(ENDS)
    weeks = ShopWeeks.begun(tmp_path, ["a"], trials=1)
    weeks.promote("second", models=FLAT, trials=1, prepare=f"{tmp_path}/ends.py:prepare")
    champions, challengers = weeks.state()
    models = ComparedModels(NAME, str(tmp_path / "runs"), "y", "rmse", least_gain=0.0)
    usual = UnseenRows(rows(0, 70)[60:], None)
    fatal = UnseenRows(usual.frame.assign(x=1e4), None)
    with ChildProcess() as child:
        found = losses_in(child, models, champions["a"], challengers["a"], fatal)
        assert (found.champion is not None, found.comparison, found.fault) == (True, None, "")
        assert found.note == "its model has ended its process (SIGKILL)"
        both = losses_in(child, models, champions["a"], challengers["a"], usual)
    here = models.losses(champions["a"], challengers["a"], usual)
    assert both.champion is not None
    assert here.champion is not None
    assert both.champion.tolist() == here.champion.tolist()
    assert isinstance(both.comparison, RowComparison)
    assert here.comparison is not None
    assert (both.comparison.rows, both.comparison.to_json()) == (10, here.comparison.to_json())
