"""The tasks that ship. Every `Task` class with a name in a module here is one; `deskhand.episodes.tasks.catalogue` finds them.

Modules whose names begin with an underscore have what several tasks share. What must never appear here: a task that acts on its
files from outside to solve itself, a wait for a fixed time, chance that is not from the seed.
"""

from __future__ import annotations
