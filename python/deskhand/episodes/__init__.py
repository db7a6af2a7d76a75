"""Episodes: a task is set up, an agent acts, the result is checked, and all of it is recorded.

The parts, from the inside out: `outcome` (how an episode ended, and what follows), `task` (what is to be done), `context`
(the desktop's machine, for setup and evaluation), `ledger` (which worker has which episode, and which are done: the source
of truth), `record` (what happened), `attempt` (one try at one episode), `worker` and the engines (many of them), `report`.
"""

from __future__ import annotations
