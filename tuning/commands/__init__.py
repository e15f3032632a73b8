"""Commands of `tuning` in files of their own; `tuning.cli.ELSEWHERE` names them."""
