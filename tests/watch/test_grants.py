"""What a grant allows ends with it."""

from __future__ import annotations

import contextlib
import inspect
from typing import TYPE_CHECKING

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from deskhand.watch.grants import GrantOptions, Grants
from faults.helpers import until
from watch.clients import ENDED, closed_with, enter, refused, socket, turn

if TYPE_CHECKING:
    import deskhand
    from deskhand.watch import Server

LIMIT = 20.0


def test_the_options_of_a_link_are_those_of_a_grant() -> None:
    given = inspect.signature(Grants.issue).parameters.values()
    assert set(GrantOptions.__annotations__) == {each.name for each in given if each.kind is each.KEYWORD_ONLY}


def test_revoking_and_expiry_end_live_connections(watched: tuple[deskhand.Desktop, Server]) -> None:
    _, server = watched
    keys = enter(server, "watch", name="gone")
    with socket(server, keys) as made:
        turn(made)
        (grant,) = [each for each in server.grants.all() if each.name == "gone"]
        assert server.grants.revoke(grant.id)
        assert closed_with(made)[0] == ENDED
    assert refused(server, keys) == 403
    for lifetime in (1.0, 4.0, 16.0):
        with contextlib.ExitStack() as held:
            try:
                made = held.enter_context(socket(server, enter(server, "watch", lifetime=lifetime)))
            except (InvalidStatus, AssertionError):
                # On a busy machine it had ended before, or its link had.
                continue
            assert closed_with(made)[0] == ENDED
            break
    else:
        pytest.fail("no connection was made in 16 s")


def test_a_grant_has_its_number_of_connections(watched: tuple[deskhand.Desktop, Server]) -> None:
    _, server = watched
    keys = enter(server, "watch", connections=1)
    with socket(server, keys) as made:
        turn(made)
        with socket(server, keys) as further:
            assert closed_with(further) == (1008, "its grant allows no further connection: close another one")

    def free() -> bool:
        with contextlib.suppress(ConnectionClosed), socket(server, keys) as made:
            turn(made)
            return True
        return False

    until(free, LIMIT, "the connection to be free again")
