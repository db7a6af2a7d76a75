"""A live page of a desktop: see it, see what its agent does, take control, and answer its questions.

with deskhand.launch() as desktop, deskhand.watch.serve(desktop) as server:
print(server.link("watch", "control", "approve"))
"""

from __future__ import annotations

from deskhand.watch.grants import Grant, Grants
from deskhand.watch.recording import Recording, record
from deskhand.watch.server import Application, application
from deskhand.watch.serving import Server, serve

__all__ = ["Application", "Grant", "Grants", "Recording", "Server", "application", "record", "serve"]
