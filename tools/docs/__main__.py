"""Write what the documentation is built of: `python -m tools.docs`.

`--site DIRECTORY` gets the settings and the pages of the site, `--man DIRECTORY` the manual pages.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tools.docs import manual, staging


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.docs", description=__doc__)
    parser.add_argument("--site", type=Path)
    parser.add_argument("--man", type=Path)
    options = parser.parse_args()
    if options.site:
        staging.stage(options.site)
    if options.man:
        manual.write(options.man)


main()
