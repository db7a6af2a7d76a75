"""The cause of an exception: the agent, its model provider, the desktop or deskhand itself.

This module only judges exceptions. It recognizes those of SDKs without importing them: by an HTTP status that the exception
carries (`status_code`, `code`, `response.status_code`, botocore's `response["ResponseMetadata"]`), or by the name of its class.
There is no SDK and no desktop here; `deskhand.episodes.outcome` decides what follows from a cause.
"""

from __future__ import annotations

import sys
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from deskhand._core.redaction import one_line
from deskhand.episodes.outcome import Cause
from deskhand.errors import DeskhandError, DesktopLost, EpisodeError, PolicyDenied, ProtocolViolation

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST = 500
_DEEPEST = 20
# A request that was rejected for its content is the agent's fault. All other statuses are the provider's, including those about
# the key and the account, because no agent could have avoided them.
_AGENTS_OWN = {
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.METHOD_NOT_ALLOWED,
    HTTPStatus.NOT_ACCEPTABLE,
    HTTPStatus.LENGTH_REQUIRED,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
}
_PROVIDER_NAMES = frozenset(
    {
        # openai, anthropic
        "APIConnectionError",
        "APITimeoutError",
        "InternalServerError",
        "OverloadedError",
        "RateLimitError",
        "AuthenticationError",
        "PermissionDeniedError",
        # google.genai, google.api_core
        "ServerError",
        "ResourceExhausted",
        "ServiceUnavailable",
        "DeadlineExceeded",
        "TooManyRequests",
        # botocore
        "ConnectTimeoutError",
        "ConnectionClosedError",
        "EndpointConnectionError",
        "NoCredentialsError",
        "ReadTimeoutError",
        # httpx, aiohttp, requests, urllib, http.client
        "ClientConnectionError",
        "ConnectTimeout",
        "ReadTimeout",
        "RemoteDisconnected",
        "ServerTimeoutError",
        "TransportError",
        "URLError",
        # agent_framework
        "ChatClientInvalidAuthException",
    }
)
# SDKs wrap the exceptions of tools in exceptions of their own.
_OUR_ERRORS = {
    DesktopLost: Cause.DESKTOP_LOST,
    ProtocolViolation: Cause.DRIVER_BUG,
    PolicyDenied: Cause.POLICY_DENIED,
}
# An error at most this many of our frames below the agent's comes from the agent's own arguments.
_ARGUMENTS_DEEP = 3
_AGENT_SIDE = ("deskhand.episodes.play.agents", "deskhand.episodes.play.loops", "deskhand.episodes.play.supervision")


def blame(error: BaseException) -> Cause:
    """The cause for an exception of the agent's part."""
    for kind, cause in _OUR_ERRORS.items():
        if any(isinstance(each, kind) for each in _chain(error)):
            return cause
    if from_provider(error):
        return Cause.MODEL_PROVIDER
    return Cause.DRIVER_BUG if _ours(error) else Cause.AGENT_ERROR


def from_provider(error: BaseException) -> bool:
    """Whether it, or an exception that it was raised from, means that the model's provider failed."""
    return any(_says_provider(each) for each in _chain(error))


def described(error: BaseException) -> str:
    """An exception in one line."""
    kind = type(error).__name__
    try:
        said = one_line(str(error).replace("\n", " "), _LONGEST)
    except Exception:  # noqa: BLE001 # an agent's exception may have a broken `__str__`
        said = ""
    return f"{kind}: {said}" if said else kind


def placed(error: BaseException) -> str:
    """An exception in one line, with the file and line of the code of neither a package nor Python that raised it."""
    place = ""
    trace = error.__traceback__
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        file = trace.tb_frame.f_code.co_filename
        installed = "site-packages" in file or "dist-packages" in file or file.startswith("<")
        if not installed and module != "deskhand" and (module == "__main__" or module not in sys.stdlib_module_names):
            place = f" ({one_line(file, _LONGEST)}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return described(error) + place


def unwritten(error: OSError | EpisodeError) -> str:
    """The message for a record that cannot be written."""
    hint = "; make room there, and run it again" if isinstance(error, OSError) else ""
    return f"the record cannot be written: {described(error)}{hint}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception, those that it was raised from or while handling, and the members of groups."""
    waiting, seen = [error], set[int]()
    while waiting and len(seen) < _DEEPEST:
        each = waiting.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        if isinstance(each, BaseExceptionGroup):
            waiting.extend(each.exceptions)
        behind = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
        if behind is not None:
            waiting.append(behind)


def _says_provider(error: BaseException) -> bool:
    if isinstance(error, DeskhandError | SystemExit):
        return False
    status = _status(error)
    if status is not None:
        return status not in _AGENTS_OWN
    return isinstance(error, ConnectionError) or any(kind.__name__ in _PROVIDER_NAMES for kind in type(error).__mro__)


def _status(error: BaseException) -> int | None:
    """The HTTP status of an SDK's exception, if it means a failure."""
    response = _attribute(error, "response")
    candidates = [_attribute(error, "status_code"), _attribute(error, "code")]
    if isinstance(response, dict):
        metadata = response.get("ResponseMetadata")
        candidates.append(metadata.get("HTTPStatusCode") if isinstance(metadata, dict) else None)
    else:
        candidates.append(_attribute(response, "status_code"))
    for status in candidates:
        if isinstance(status, int) and not isinstance(status, bool) and 400 <= status < 600:
            return int(status)
    return None


def _attribute(value: object, name: str) -> Any:
    try:
        return getattr(value, name, None)
    except Exception:  # noqa: BLE001 # a foreign property may raise anything
        return None


def _ours(error: BaseException) -> bool:
    """Whether it comes from this package, and not from an argument of the agent."""
    if not isinstance(error, Exception) or isinstance(error, DeskhandError):
        return False
    modules = []
    trace = error.__traceback__
    while trace is not None:
        modules.append(str(trace.tb_frame.f_globals.get("__name__", "")))
        trace = trace.tb_next
    depth = 0
    for module in reversed(modules):
        if module.startswith(_AGENT_SIDE):
            return False
        if module.startswith("deskhand."):
            depth += 1
        elif depth:
            break
        elif not _is_library(module):
            return False
    wrong_argument = isinstance(error, TypeError | ValueError | OSError) and depth <= _ARGUMENTS_DEEP
    return depth > 0 and not wrong_argument


def _is_library(module: str) -> bool:
    """Whether a frame below ours may belong to a library that we called, and not to a callback of the agent."""
    return module.partition(".")[0] in sys.stdlib_module_names or module.startswith("numpy")
