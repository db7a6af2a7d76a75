"""`PYTHONPATH=tests python -m zoo`: see `--help`."""

from zoo.main import main

main()
