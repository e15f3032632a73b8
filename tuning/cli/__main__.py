"""`python -m tuning.cli` is the command `tuning`."""

from tuning.cli.main import main

main()
