"""A page about a run of episodes: `page.write_report`.

From the inside out: `summary` (the numbers), `timeline` (the moments of an episode), `plots`, `page` (the file). A report has
no number that is not in the run.
"""

from __future__ import annotations
