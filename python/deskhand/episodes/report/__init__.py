"""Reports on runs of episodes: a page (`page.write_report`), the tables of a paper (`table`), a check (`verification`).

From the inside out: `statistics`, `summary` (the numbers), `comparison` (of two runs), `table`; `timeline` (the moments of an
episode), `plots`, `page` (the file); `plausible` (what a result may say), `verification`. A report has no number that is not
in the run.
"""

from __future__ import annotations
