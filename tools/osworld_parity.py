"""Writes docs/osworld-parity.md anew: `python tools/osworld_parity.py CHECKOUT SET`, with SET as "the verified set at 1234567".

The evaluators' environment and the cache of files are those of this machine; with an empty cache (`DESKHAND_ASSETS`) the page
says of each task that downloads a file that it needs one.
"""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs/osworld-parity.md"
MARKERS = ("<!-- parity -->\n", "<!-- /parity -->")


def main() -> None:
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    checkout, name = sys.argv[1:]
    words = ["run", f"osworld:{checkout}", "--plan", "--backend", "docker", "--table", "markdown"]
    tables = subprocess.run([sys.executable, "-m", "deskhand", *words], stdout=subprocess.PIPE, text=True, check=True)
    before, begun, rest = PAGE.read_text().partition(MARKERS[0])
    _, ended, after = rest.partition(MARKERS[1])
    if not begun or not ended:
        raise SystemExit(f"{PAGE} has no {' and '.join(map(str.strip, MARKERS))}: put both where the tables belong")
    when = f"{dt.datetime.now(dt.UTC):%Y-%m-%d}, {name}:"
    PAGE.write_text(f"{before}{MARKERS[0]}\n{when}\n\n{tables.stdout}\n{MARKERS[1]}{after}")


if __name__ == "__main__":
    main()
