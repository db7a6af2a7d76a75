"""What is on this machine for the tasks of OSWorld: programs, files in the cache, the environment of evaluators."""

from __future__ import annotations

import shlex
import shutil
from typing import TYPE_CHECKING

from deskhand.episodes.tasks.osworld.assets import find_assets
from deskhand.episodes.tasks.osworld.evaluators import find_evaluators
from deskhand.episodes.tasks.osworld.plan import Facts
from deskhand.errors import EpisodeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deskhand.episodes.tasks.context import TaskContext

# Programs that tasks know under a name that is written for them, see `steps`.
_BEHIND = {"google-chrome": "chromium", "python": "python3"}
# The programs of the image `deskhand/osworld`, of those that tasks name; see its Dockerfile.
_IN_IMAGE = frozenset(
    """
    bc chromium curl dconf eog evince ffmpeg gedit gimp gio git gnome-terminal gsettings jq libreoffice mousepad mupdf nautilus
    pactl pcmanfm pulseaudio python3 thunderbird unzip update-desktop-database vlc wget wmctrl xdg-open xdotool xsel xterm zip
    """.split()  # noqa: SIM905 # a list of so many words
)


def facts_before() -> Facts:
    """What can be known without a desktop: every program counts as there, and any place of desktops."""
    return _facts(has_everything=True, local=False)


def facts_here(backend: str) -> Facts:
    """What there is for desktops of a backend. A container counts as one of the image `deskhand/osworld`."""
    return _facts(has_everything=False, local=backend == "local")


def _facts(*, has_everything: bool, local: bool) -> Facts:
    evaluators = find_evaluators()
    assets = find_assets()

    def has_program(name: str) -> bool:
        program = _BEHIND.get(name, name)
        return has_everything or (shutil.which(program) is not None if local else program in _IN_IMAGE)

    return Facts(
        has_program=has_program,
        has_asset=assets.has,
        packages=None if evaluators is None else evaluators.packages,
        version="" if evaluators is None else evaluators.version,
        local=local,
    )


def lacking_programs(context: TaskContext, programs: Sequence[str]) -> list[str]:
    """The programs that a desktop's machine lacks."""
    behind = {_BEHIND.get(name, name): name for name in programs}
    asked = "\n".join(f"command -v -- {shlex.quote(name)} >/dev/null || echo {shlex.quote(name)}" for name in behind)
    found = context.run(asked or "true")
    if found.exit_code is None:
        raise EpisodeError(f"the programs of the desktop cannot be looked for: {found.outcome}")
    return [behind[name] for name in found.stdout.split() if name in behind]
