"""The documentation site and the manual pages, made from docs/, the docstrings, `errors.py` and the command line."""
