"""Drivers of schedulers with a memory, ended by SIGKILL at moments counted in steps and writes: nothing is lost."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from chaos import command, duplicates, figure, seed_of, truth, wait_for
from drivers import ARMS, definition_of
from paths import HELPERS
from warm_children import run_script

from tuning import RunResult, TuneRunner

PATIENCE_S = 500  # a loaded machine is no failure
Undisturbed = Callable[[int], dict[str, Any]]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """What a run with so many customers finds out when nothing happens."""
    known: dict[int, dict[str, Any]] = {}

    def find(customers: int) -> dict[str, Any]:
        if customers not in known:
            folder = tmp_path_factory.mktemp("whole")
            runner = TuneRunner(**definition_of(folder, customers))
            known[customers] = truth(runner.run(str(folder / "run"), progress=False, in_process=True))
        return known[customers]

    return find


def write(folder: Path, customers: int) -> None:
    (folder / "definition.yaml").write_text(yaml.safe_dump(definition_of(folder, customers)))


def test_every_arm_of_the_run_does_what_is_its_own(undisturbed: Undisturbed) -> None:
    """Else the tests below would show nothing."""
    trials = undisturbed(2)["trials"]
    for arm in ARMS:
        own = [trial for trial in trials if f"/{arm}/" in trial["study"]]
        assert len(own) == 24
        assert any(trial["lineage"] != "None" for trial in own) == arm.endswith("pbt")
        assert any(trial["state"] == "'stopped'" for trial in own) != arm.endswith("pbt")


def killed_at_random(folder: Path, kills: int, life: int, seed: int) -> dict[str, Any]:
    """Work through a run in drivers, the first of which are killed; what `tests/helpers/drivers.py` says of it."""
    given = ["run", "definition.yaml", "--kill", str(seed), str(kills), str(life)]
    done = run_script(HELPERS.joinpath("drivers.py"), *given, cwd=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


@pytest.mark.parametrize(
    ("customers", "kills"), [(2, 8), pytest.param(10, 100, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])]
)
def test_drivers_killed_at_random_steps_and_writes(
    undisturbed: Undisturbed, tmp_path: Path, customers: int, kills: int
) -> None:
    write(tmp_path, customers)
    answer = killed_at_random(tmp_path, kills, *((300, seed_of("drivers")) if kills > 8 else (100, 1)))
    result = RunResult(str(tmp_path / "run"))
    assert truth(result) == undisturbed(customers)
    assert duplicates(result) == []
    assert answer["lost"] == []
    assert answer["resumed"] >= answer["kills"] // 2 > 3
    steps = sum(len(trial.steps) for trial in result.trial_records)
    figure(f"{answer['kills']} drivers killed over {steps} steps: {answer['steps']} steps were trained")


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("customers", "kills"), [(4, 8)])
def test_drivers_on_ray_killed_in_the_middle_of_a_study(
    undisturbed: Undisturbed, tmp_path: Path, customers: int, kills: int
) -> None:
    """The command `tuning`, killed by one of its workers at a step that follows the first records."""
    write(tmp_path, customers)
    rng = random.Random(seed_of("drivers on Ray") if kills > 1 else 1)
    victim, before = tmp_path / "victim", dict[Any, float]()
    for number in range(1, kills + 2):
        arguments = ["run", "definition.yaml", "--run-dir", "run"] if number == 1 else ["resume", "run"]
        driver = command(tmp_path, *arguments, CHAOS_VICTIM=str(victim))
        if number <= kills:
            victim.with_name("next").write_text(f"{driver.pid} {number:04d} {rng.randint(1, 40)}")
            victim.with_name("next").replace(victim)
        wait_for(lambda: driver.poll() is not None, PATIENCE_S, "the driver's end")  # noqa: B023  # called within this turn
        victim.unlink(missing_ok=True)
        known = {record.key: record.started for record in RunResult(str(tmp_path / "run")).trial_records}
        assert before.items() <= known.items()
        before = known
        if driver.returncode != -signal.SIGKILL:
            break
        assert 0 < len(known) < 12 * len(ARMS) * customers
    assert driver.returncode == 0, (tmp_path / "err").read_text()
    assert number > 1
    result = RunResult(str(tmp_path / "run"))
    assert truth(result) == undisturbed(customers)
    assert duplicates(result) == []
    figure(f"{number - 1} drivers on Ray killed in the middle of a study")
