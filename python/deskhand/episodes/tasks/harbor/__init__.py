"""The tasks of Harbor as they are: read, planned, run in images of their own, and graded by their own tests.

`taskfile` reads a `task.toml`, `folder` the files beside it, `plan` says what can run, `consent` keeps what the user allows,
`rewards` reads what the tests write, and `task` joins them.
"""
