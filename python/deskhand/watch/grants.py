"""Grants: who may watch, control and approve, until when, and on how many connections.

A link carries a token, which works for the page that uses it first. That page gives a key that it has made, and gets a cookie
that no script can read. A request needs both, because browsers send a cookie to every port of a host and show the storage in
which a page keeps its key to one origin only. A page whose answer was lost gives the token and its key again. This module keeps
hashes of all three. It has no clock and no socket.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypedDict, get_args

from deskhand._core.arguments import expect_amount, expect_integer, expect_several, expect_text
from deskhand._core.redaction import one_line
from deskhand.errors import ActionError, PolicyDenied, shown

if TYPE_CHECKING:
    from collections.abc import Callable

Scope = Literal["watch", "control", "approve"]
"""What a viewer may do: see the desktop; take control, pause and stop; answer questions of a policy."""

_SCOPES = frozenset(get_args(Scope))
# 256 bits cannot be guessed, so wrong ones need no limit, by which a stranger could keep others out.
_TOKEN_BYTES = 32
_SHORTEST_KEY = 43
_LONGEST_KEY = 200
_LONGEST_NAME = 60
_LONGEST_LIFE = 366 * 24 * 3600.0
_MOST_CONNECTIONS = 1000
_MOST_GRANTS = 1000


@dataclass(frozen=True, slots=True)
class Grant:
    """A permission that was given.

    Attributes:
        id: Its number, for `Grants.revoke`.
        name: Who has it, as others read it.
        scopes: What its holder may do; always `watch` too.
        expires: When it ends, in the seconds of the clock of `Grants`.
        connections: How many live connections it may have at once.
    """

    id: int
    name: str
    scopes: frozenset[Scope]
    expires: float
    connections: int


@dataclass(slots=True)
class _Link:
    grant: Grant
    until: float
    # Whose it is, as 0: a dict, because its `setdefault` lets one of several threads be the first.
    taken: dict[int, _Session] = field(default_factory=dict)


@dataclass(slots=True)
class _Session:
    grant: Grant
    cookie: bytes
    key: bytes
    live: int = 0


class GrantOptions(TypedDict, total=False):
    """The options of `Grants.issue`."""

    name: str
    lifetime: float
    link_lifetime: float
    connections: int


class Grants:
    """All grants of one server. Any thread may call it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin with none. `clock` gives monotonic seconds."""
        self._clock = clock
        self._links: dict[bytes, _Link] = {}
        self._sessions: dict[bytes, _Session] = {}
        self._numbers = 0
        self._revoked: dict[object, Callable[[Grant], None]] = {}

    def issue(
        self,
        *scopes: Scope,
        name: str = "viewer",
        lifetime: float = 12 * 3600.0,
        link_lifetime: float = 600.0,
        connections: int = 8,
    ) -> tuple[Grant, str]:
        """Give a permission.

        Args:
            scopes: `watch`, `control`, `approve`; each has `watch` too.
            name: Who gets it: others read it in errors, logs and on the page.
            lifetime: Seconds from now until it ends.
            link_lifetime: Seconds in which the token must be exchanged.
            connections: How many live connections it may have at once: 1 for a single one.

        Returns:
            The grant, and the token for a link, which works once.

        Raises:
            ActionError: An argument is wrong, or there are too many grants.
        """
        for scope in expect_several("a link: scopes", scopes):
            if scope not in _SCOPES:
                raise ActionError(f"a link: there is no scope {shown(scope)}: use {', '.join(sorted(_SCOPES))}")
        for what, seconds in (("lifetime", lifetime), ("link_lifetime", link_lifetime)):
            if expect_amount(f"a link: {what}", seconds) > _LONGEST_LIFE:
                raise ActionError(f"a link: {what} is at most a year in seconds, not {shown(seconds)}")
        expect_integer("a link: connections", connections, 1, _MOST_CONNECTIONS)
        known = one_line(" ".join(expect_text("a link: name", name).split()), _LONGEST_NAME)
        if not known:
            raise ActionError("a link: the name is empty: others read it in errors and logs")
        self._forget_ended()
        if len(self._known()) >= _MOST_GRANTS:
            raise ActionError(f"a link: {_MOST_GRANTS} grants are in use: revoke one, or wait until one expires")
        now = self._clock()
        self._numbers += 1
        grant = Grant(self._numbers, known, frozenset({*scopes, "watch"}), now + lifetime, connections)
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        self._links[_digest(token)] = _Link(grant, now + min(link_lifetime, lifetime))
        return grant, token

    def redeem(self, token: str, key: str) -> tuple[Grant, str]:
        """Exchange a link's token, once: again only with the same key, by a page that did not get the answer.

        Args:
            token: The link's.
            key: A secret that the page has made: 43 to 200 characters, as of 256 bits in base64.

        Returns:
            The grant, and what goes into the cookie. A cookie that was given before ends.

        Raises:
            ActionError: The key is too short or too long.
            PolicyDenied: The token is unknown, used with another key, or too old.
        """
        if not _SHORTEST_KEY <= len(key) <= _LONGEST_KEY:
            raise ActionError(f"the key is a secret of {_SHORTEST_KEY} to {_LONGEST_KEY} characters")
        given, proof = _digest(token), _digest(key)
        link = next((each for known, each in tuple(self._links.items()) if hmac.compare_digest(known, given)), None)
        session = None
        if link is not None and link.until > self._clock():
            session = link.taken.setdefault(0, _Session(link.grant, b"", proof))
        if session is None or not hmac.compare_digest(session.key, proof):
            raise PolicyDenied(
                "opening the link", "this link is unknown, was used already, or is too old: ask for a new one"
            )
        self._sessions.pop(session.cookie, None)
        cookie = secrets.token_urlsafe(_TOKEN_BYTES)
        session.cookie = _digest(cookie)
        self._sessions[session.cookie] = session
        return session.grant, cookie

    def find(self, cookie: str, key: str) -> Grant | None:
        """The grant of a cookie and a key; None if there is none, or it has ended."""
        session = self._session(cookie, key)
        return None if session is None else session.grant

    def enter(self, cookie: str, key: str) -> Grant:
        """Begin a live connection; `leave` ends it.

        Raises:
            PolicyDenied: There is no such grant, or it has as many connections as it may.
        """
        session = self._session(cookie, key)
        if session is None:
            raise PolicyDenied("this connection", "its grant is unknown or has ended: ask for a new link")
        if session.live >= session.grant.connections:
            raise PolicyDenied("this connection", "its grant allows no further connection: close another one")
        session.live += 1
        return session.grant

    def leave(self, grant: Grant) -> None:
        """End a live connection."""
        for session in tuple(self._sessions.values()):
            if session.grant is grant and session.live:
                session.live -= 1

    def is_valid(self, grant: Grant) -> bool:
        """Whether it was neither revoked nor has ended."""
        return grant.expires > self._clock() and any(each.grant is grant for each in tuple(self._sessions.values()))

    def seconds_left(self, grant: Grant) -> float:
        """Seconds until a grant ends."""
        return grant.expires - self._clock()

    def revoke(self, grant: Grant | int) -> bool:
        """End a grant and its live connections; whether there was one.

        Args:
            grant: The grant, or its number.
        """
        number = expect_integer("revoke: grant", getattr(grant, "id", grant), 1, 2**53)
        ended = [each for each in self._known() if each.id == number]
        self._links = {known: link for known, link in self._links.items() if link.grant.id != number}
        self._sessions = {cookie: each for cookie, each in self._sessions.items() if each.grant.id != number}
        for each in ended:
            for callback in tuple(self._revoked.values()):
                callback(each)
        return bool(ended)

    def on_revoked(self, callback: Callable[[Grant], None]) -> Callable[[], None]:
        """Call `callback` with each grant that is revoked, in the thread that does it; returns what ends that."""
        key = object()
        self._revoked[key] = callback

        def end() -> None:
            self._revoked.pop(key, None)

        return end

    def all(self) -> tuple[Grant, ...]:
        """The grants that last, those of unused links too."""
        self._forget_ended()
        return self._known()

    def _known(self) -> tuple[Grant, ...]:
        known = {link.grant.id: link.grant for link in tuple(self._links.values())}
        known |= {session.grant.id: session.grant for session in tuple(self._sessions.values())}
        return tuple(known[number] for number in sorted(known))

    def _session(self, cookie: str, key: str) -> _Session | None:
        given, proof = _digest(cookie), _digest(key)
        found = next((each for each in tuple(self._sessions.values()) if hmac.compare_digest(each.cookie, given)), None)
        if found is None or not hmac.compare_digest(found.key, proof):
            return None
        return found if found.grant.expires > self._clock() else None

    def _forget_ended(self) -> None:
        now = self._clock()
        self._links = {known: link for known, link in self._links.items() if link.until > now}
        self._sessions = {cookie: each for cookie, each in self._sessions.items() if each.grant.expires > now}


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
