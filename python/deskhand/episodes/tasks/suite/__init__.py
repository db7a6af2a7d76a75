"""The tasks that ship: every named `Task` class in a module here. `deskhand.episodes.tasks.catalogue` finds them.

Modules whose names begin with an underscore have code that several tasks share. A task here never solves itself by changing
files from outside, never waits for a fixed time, and takes all chance from the seed.
"""

from __future__ import annotations
