"""What leaves a call that typed a secret."""

from __future__ import annotations

import traceback

import pytest

from deskhand import BackendError, DeskhandTimeout, Untypable
from deskhand._core.redaction import conceal

CANARY = "correct horse"


def raised(error: BaseException) -> BaseException:
    """The same error, as it comes out of frames that had the secret, and of the handling of another error that names it."""
    secret = CANARY
    try:
        try:
            raise ValueError(secret)  # noqa: TRY301 # to have frames
        except ValueError as before:
            raise error from before
    except BaseException as found:  # noqa: BLE001 # of any kind
        return found


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Untypable([(0, "c"), (1, "o")]), Untypable),
        (BackendError("the connection was lost"), BackendError),
        (DeskhandTimeout("waited 1 s"), DeskhandTimeout),
        (TimeoutError("waited 1 s"), BackendError),
        (KeyboardInterrupt(), KeyboardInterrupt),
        (RuntimeError(f"cannot type {CANARY}"), BackendError),
    ],
    ids=lambda value: type(value).__name__,
)
def test_nothing_of_a_secret_is_attached_to_an_error(error: BaseException, kind: type[BaseException]) -> None:
    told = conceal(raised(error))
    assert type(told) is kind
    assert (told.__traceback__, told.__cause__, told.__context__) == (None, None, None)
    shown = traceback.TracebackException.from_exception(told, capture_locals=True)
    assert CANARY not in "".join(shown.format())
    assert not isinstance(told, Untypable) or told.characters == ()


def test_what_was_done_before_is_told() -> None:
    error = BackendError("the connection was lost")
    error.note_progress(2, "type", 1)
    told = conceal(raised(error))
    assert isinstance(told, BackendError)
    assert (told.index, told.doing, told.done) == (2, "type", 1)
