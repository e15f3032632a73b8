"""The child process that writes a run's tables: `python -m tuning.service.views.write_child RUN FOLDER`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tuning.basics.exit_codes import REFUSED
from tuning.basics.wording import advice_for_the_shell
from tuning.errors import TuningError, failure
from tuning.records.ownership import begun_term
from tuning.storage.run_directory import RunDirectory


def main(run: str, folder: str) -> None:
    """Write the tables of a run that has begun; one that has not is told before what reads and draws is loaded."""
    directory = RunDirectory(run)
    begun_term(directory)

    from tuning.runs.results import RunResult
    from tuning.service.views.write import write

    write(RunResult(directory), Path(folder))


if __name__ == "__main__":
    try:
        with advice_for_the_shell():
            main(*sys.argv[1:])
    except TuningError as error:
        json.dump(failure(error), sys.stdout)
        sys.exit(REFUSED)
