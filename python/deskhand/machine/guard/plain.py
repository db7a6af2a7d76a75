"""What `contextlib` and `json` do for the guard: importing them, with `enum` and `re`, takes as long as starting Python."""

from __future__ import annotations

import _json

# Type checkers know this name. Importing it would take as long as half of the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Suppress:
    """`Suppress`, without the import."""

    def __init__(self, *errors: type[BaseException]) -> None:
        self.errors = errors

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, self.errors)


class _Reading:
    """What `json` gives its scanner."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float

    def __init__(self) -> None:
        self.memo: dict[str, str] = {}


_scan = _json.make_scanner(_Reading())  # type: ignore[arg-type] # of its context typeshed says that it is a scanner too


def read_json(line: bytes) -> Any:
    value, end = _scan(line.decode(), 0)
    if line[end:].strip():
        raise ValueError("more than one value in a line")
    return value


def write_json(message: dict[str, object]) -> bytes:
    """An object of numbers, texts and truths."""
    names: dict[object, str] = {None: "null", True: "true", False: "false"}
    items = []
    for key, value in message.items():
        if isinstance(value, str):
            said = _json.encode_basestring_ascii(value)
        else:
            said = names[value] if value is None or isinstance(value, bool) else str(value)
        items.append(f'"{key}": {said}')
    return f"{{{', '.join(items)}}}\n".encode()
