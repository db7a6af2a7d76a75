"""Where your agent goes. This one looks, acts and looks again, over X11 and over VNC, and says what it saw."""

import deskhand
from deskhand import LeftClick, Type, Wait

SOCKETS = "/tmp/.X11-unix"


def main() -> None:
    # X11 lists windows, and pictures pass through memory that both containers share.
    with deskhand.connect(f"x11:unix:{SOCKETS}/X0") as desktop:
        while not (windows := desktop.windows.list()):
            desktop.perform(Wait(0.1))
        window = windows[-1]
        middle = (window.rect.x + window.rect.width // 2, window.rect.y + window.rect.height // 2)
        seen = desktop.perform(LeftClick(middle), Type("echo over X11\n"))
        print(f"over X11: {window.class_name} is there, what was typed is to be seen: {seen.changed}", flush=True)
        print("not as it should be:", *(desktop.status or ["nothing"]), flush=True)
    # VNC needs no cookie: any client with access to the directory may connect.
    with deskhand.connect(f"vnc+unix://{SOCKETS}/vnc") as desktop:
        seen = desktop.perform(LeftClick(middle), Type("echo over VNC\n"))
        print(f"over VNC: {desktop.size.width}x{desktop.size.height}, the same: {seen.changed}", flush=True)


if __name__ == "__main__":
    main()
