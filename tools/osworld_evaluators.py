"""Writes the table of upstream's evaluators: `python tools/osworld_evaluators.py FOLDER`, where desktop-env is unpacked."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from deskhand.episodes.tasks.osworld.imports import PACKAGE, exported, uses_of

TABLE = Path(__file__).parent.parent / "python/deskhand/episodes/tasks/osworld/evaluators.json"


def main() -> None:
    root = Path(sys.argv[1])
    files = root.joinpath(*PACKAGE.split(".")).rglob("*.py")
    sources = {".".join(path.relative_to(root).with_suffix("").parts): path.read_text("utf-8") for path in files}
    found = {}
    for kind in ("metrics", "getters"):
        rows = {}
        for name, (module, there) in sorted(exported(sources[f"{PACKAGE}.{kind}.__init__"]).items()):
            uses = uses_of(sources, f"{PACKAGE}.{kind}.{module}", there)
            rows[name] = [sorted(uses.packages), sorted(uses.environment)]
        found[kind] = rows
    lines = [
        f'"version": {json.dumps(next(root.glob("desktop_env-*.dist-info")).name.split("-")[1].removesuffix(".dist"))}'
    ]
    for kind, rows in found.items():
        body = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
        lines.append(f'"{kind}": {{\n{body}\n }}')
    TABLE.write_text("{\n " + ",\n ".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
