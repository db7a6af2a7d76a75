"""What a wrong argument makes of the public functions and classes beyond `deskhand` itself: a refusal of ours, or nothing."""

from __future__ import annotations

import asyncio
import enum
import importlib
import inspect
import types
import typing
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from deskhand import AsyncDesktop, DeskhandError, Desktop
from deskhand.backends.memory import MemoryBackend
from deskhand.episodes.tasks.task import Task
from deskhand.providers import protocol
from deskhand.providers.agent_framework import types as contents
from faults.surface import PublicCall, function
from faults.wrong import wrong_arguments

PROVIDERS = sorted(path.parent.name for path in Path(protocol.__file__).parent.glob("*/__init__.py"))
# Whole modules; and of others, those whose arguments a user gives.
MODULES: dict[str, tuple[str, ...]] = {
    "deskhand.execution": (),
    "deskhand.providers.cua.messages": (),
    "deskhand.providers.session": ("AsyncModelSession", "ModelSession"),
    **{f"deskhand.providers.{name}": () for name in PROVIDERS},
    "deskhand.providers.osworld.virtual_machines": ("VirtualMachines",),
    "deskhand.pool.status": (),
    "deskhand.pool.pool": (),
    "deskhand.policy.audit": (),
    "deskhand.policy.rules": ("ClassPolicy", "Context", "Decision"),
    "deskhand.launchers.docker.spec": (),
    "deskhand.launchers.docker.allow_list": ("parse_hosts",),
    "deskhand.launchers.docker.engine_address": ("find_engine",),
    "deskhand.episodes.ledger": ("ledger_name", "open_ledger"),
    "deskhand.episodes.play.agents": ("find_agent",),
    "deskhand.episodes.record.export": ("export",),
    "deskhand.episodes.record.reader": ("open_run",),
    "deskhand.episodes.report.page": ("write_report",),
    "deskhand.episodes.report.statistics": (),
    "deskhand.episodes.run.manifest": ("read_manifest",),
    "deskhand.episodes.run.run": ("begin",),
    "deskhand.episodes.tasks.catalogue": ("find_tasks",),
    "deskhand.episodes.tasks.folders": ("load_folder",),
}
_VARIOUS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
# Of `Size`, which is a NamedTuple, and of aliases.
_NAMES = {**vars(typing), **vars(contents), "int": int, "float": float, "Mapping": Mapping}


def public(module: str) -> list[Callable[..., Any]]:
    found = importlib.import_module(module)
    named = [getattr(found, name) for name in MODULES[module] or public_names(found)]
    return [value for value in named if inspect.isfunction(value) or (inspect.isclass(value) and is_made(value))]


def public_names(module: ModuleType) -> list[str]:
    """Those of a package's list, or what a module defines itself without an underscore."""
    own = (name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__)
    return getattr(module, "__all__", None) or [name for name in own if not name.startswith("_")]


def is_made(kind: type) -> bool:
    """Whether its objects are made by calling it with arguments."""
    special = issubclass(kind, enum.Enum | BaseException) or typing.is_typeddict(kind) or inspect.isabstract(kind)
    return not special and not getattr(kind, "_is_protocol", False)


class Maker:
    """Makes right arguments from annotations."""

    def __init__(self, desktop: Desktop, folder: Path) -> None:
        self._known: dict[object, object] = {
            **{kind: kind() for kind in (str, bool, bytes, object)},
            int: 1,
            float: 1.0,
            str: "text",
            Any: None,
            None: None,
            Desktop: desktop,
            AsyncDesktop: AsyncDesktop(desktop),
            Path: folder / "file",
            Task: None,
        }

    def usual(self, call: PublicCall) -> dict[str, object]:
        return {each.name: self.make(each.hint) for each in call.required}

    def make(self, hint: Any) -> Any:
        if isinstance(hint, str | typing.ForwardRef):
            hint = eval(hint if isinstance(hint, str) else hint.__forward_arg__, dict(_NAMES))  # our own annotation
        if hint in self._known:
            return self._known[hint]
        origin, inner = typing.get_origin(hint), typing.get_args(hint)
        kind = origin or hint
        made: Any = None
        if origin in {typing.Union, types.UnionType}:
            made = self.make(inner[0])
        elif origin is typing.Literal:
            made = inner[0]
        elif isinstance(hint, typing.TypeVar) or typing.is_typeddict(hint) or issubclass(kind, Mapping):
            made = {}
        elif kind is Callable:
            made = print
        elif origin:
            several = [self.make(each) for each in inner if each is not Ellipsis]
            made = tuple(several) if issubclass(kind, tuple) else several
        elif issubclass(kind, enum.Enum):
            made = next(iter(kind))
        elif is_made(kind):
            made = kind(**self.usual(function(kind)))
        return made


async def ended(what: Any) -> None:
    if isinstance(what, AsyncGenerator):
        await what.aclose()
    elif inspect.isawaitable(what):
        await what
    elif callable(close := getattr(what, "close", None)) and not isinstance(what, type):
        await ended(close())


def escaped(call: PublicCall, usual: dict[str, object]) -> list[str]:
    """What other errors than ours the wrong arguments bring out."""
    found: dict[tuple[str, str], str] = {}
    for parameter, value in wrong_arguments(call):
        # A function of the caller's may raise what it likes.
        if parameter.kind in _VARIOUS or (callable(value) and "Callable" in repr(parameter.hint)):
            continue
        try:
            asyncio.run(ended(call.call(**{**usual, parameter.name: value})))
        except DeskhandError:
            continue
        except Exception as error:  # noqa: BLE001 # whatever it is, it is wrong
            # An SDK's own error is expected where the documentation names it.
            if f".{type(error).__name__}: " in (inspect.getdoc(call.call) or ""):
                continue
            label = f"{call.name}({parameter.name}={value!r:.30}) raised {error!r:.120}"
            found.setdefault((parameter.name, type(error).__name__), label)
    return list(found.values())


@pytest.mark.filterwarnings("ignore::deskhand.NoPolicyWarning", "ignore:.*feature COMPUTER_USE is enabled")
@pytest.mark.parametrize("module", MODULES)
def test_no_other_error_escapes(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("text")
    with Desktop(MemoryBackend()) as desktop:
        maker = Maker(desktop, tmp_path)
        calls = [function(value) for value in public(module)]
        wrong = [said for call in calls for said in escaped(call, maker.usual(call))]
    assert not wrong, "\n".join(wrong)
