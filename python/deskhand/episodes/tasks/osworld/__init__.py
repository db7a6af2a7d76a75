"""The tasks of OSWorld as they are: read, planned, set up on a desktop, and evaluated by upstream's own code.

`taskfile` reads a task, `collection` finds the files, `needs` and `plan` say what can run, `assets` keeps what tasks download,
`steps` sets up, `evaluators` and `evaluating` run upstream's package in a process of its own, and `task` joins them.
"""
