"""What tasks of OSWorld expect in a home directory before their own set-up."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from deskhand.errors import EpisodeError

if TYPE_CHECKING:
    from deskhand.episodes.tasks.context import TaskContext

BIN = ".local/bin"
_OFFICE_SETTINGS = ".config/libreoffice/4/user/registrymodifications.xcu"
# Post-configurations save files of other formats by a key, and do not answer a question about the format.
_OFFICE_SAVES = (
    '<item oor:path="/org.openoffice.Office.Common/Save/Document"><prop oor:name="WarnAlienFormat" oor:op="fuse">'
    "<value>false</value></prop></item>\n"
)
_OFFICE_END = "</oor:items>"
# VLC writes its settings only when they are saved, and upstream's machine has them. It must not ask on its first start.
VLC_SETTINGS = ".config/vlc/vlcrc"
VLC_PASSWORD = "password"  # noqa: S105 # upstream's
_VLC = "[qt]\nqt-privacy-ask=0\n\n[core]\nmetadata-network-access=0\n"
# Evaluators ask it what it plays. On a local desktop that would be a port of the machine.
_VLC_ASKED = f"extraintf=http\nhttp-host=127.0.0.1\nhttp-port=8080\n\n[lua]\nhttp-password={VLC_PASSWORD}\n"
BROWSER_PROFILE = ".config/google-chrome"
_SHIMS = {
    # The browser under the name, and with the folder, that the tasks know. Chromium does not sandbox root's programs.
    "google-chrome": (
        "#!/bin/bash\n"
        'flags=(--user-data-dir="$HOME/.config/google-chrome" --start-maximized)\n'
        "flags+=(--no-first-run --no-default-browser-check --password-store=basic)\n"
        '[ "$(id -u)" != 0 ] || flags+=(--no-sandbox --test-type)\n'
        "{port}"
        'exec chromium "${flags[@]}" "$@"\n'
    ),
    "python": '#!/bin/sh\nexec python3 "$@"\n',
}
# Desktops that are not in containers share the machine's ports.
_FREE_PORT = 'set -- "${@/#--remote-debugging-port=*/--remote-debugging-port=0}"\n'


def prepare(context: TaskContext) -> None:
    """Write what tasks expect in a home directory: usual folders, settings of applications, and programs by their names."""
    local = not context.desktop.has_machine
    files = {f"{BIN}/{name}": text.replace("{port}", _FREE_PORT if local else "") for name, text in _SHIMS.items()}
    # Without this file Debian's browser begins with settings that some tasks ask for, and upstream's has been run before.
    files[f"{BROWSER_PROFILE}/First Run"] = ""
    if context.read(VLC_SETTINGS) is None:
        files[VLC_SETTINGS] = _VLC if local else _VLC + _VLC_ASKED
    settings = context.text(_OFFICE_SETTINGS)
    if settings is None:
        kept = (
            resources.files("deskhand.launchers.docker") / "image" / "desktop-files" / "etc" / "skel" / _OFFICE_SETTINGS
        )
        settings = kept.read_text(encoding="utf-8")
    if "WarnAlienFormat" not in settings:
        files[_OFFICE_SETTINGS] = settings.replace(_OFFICE_END, _OFFICE_SAVES + _OFFICE_END)
    context.write_all(files)
    folders = "Desktop Documents Downloads Music Pictures Videos"
    done = context.run(f"mkdir -p {folders} && chmod +x {BIN}/*")
    if done.exit_code != 0:
        raise EpisodeError(f"the home directory cannot be prepared: {done.stderr.strip() or done.outcome}")
