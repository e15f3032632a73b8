"""`python -m tuning.cli` is the command `tuning`."""

from tuning.cli.program import main

main()
