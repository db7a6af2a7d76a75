"""Machines without the fonts that text needs: `deskhand doctor` names what is missing, and how to mend it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FONTS = Path("/usr/share/fonts")


def doctor(folder: Path, tmp_path: Path) -> dict[str, dict[str, Any]]:
    """What doctor says, by check, where fontconfig knows only the fonts of one folder."""
    config = tmp_path / "fonts.conf"
    config.write_text(f"<fontconfig><dir>{folder}</dir><cachedir>{tmp_path}/cache</cachedir></fontconfig>")
    ran = subprocess.run(
        [Path(sys.executable).with_name("deskhand"), "doctor", "--json"],
        env={**os.environ, "FONTCONFIG_FILE": str(config)},
        capture_output=True,
        check=False,
    )
    return {check["name"]: check for check in json.loads(ran.stdout)["checks"]}


@pytest.mark.parametrize(
    ("folder", "check", "state", "hint"),
    [
        ("no such folder", "fonts", "fail", "fonts-dejavu-core"),
        ("X11/misc", "fonts", "warn", "fonts-dejavu-core"),
        ("truetype/dejavu", "fonts for CJK", "warn", "fonts-noto-cjk"),
        ("truetype/dejavu", "fonts for emoji", "warn", "fonts-noto-color-emoji"),
    ],
    ids=["none", "only bitmaps", "no CJK", "no emoji"],
)
def test_missing_fonts(tmp_path: Path, folder: str, check: str, state: str, hint: str) -> None:
    """F17."""
    found = doctor(FONTS / folder, tmp_path)[check]
    assert found["state"] == state, found
    assert hint in found["fix"], found


def test_fonts_that_are_there(tmp_path: Path) -> None:
    assert doctor(FONTS, tmp_path)["fonts for CJK"]["state"] == "ok"
