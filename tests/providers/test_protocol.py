"""Every package of a provider against `deskhand.providers.protocol`, and against the list of what it has besides."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deskhand.providers import bedrock, protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

PACKAGES: Mapping[str, ModuleType] = {
    path.parent.name: importlib.import_module(f"deskhand.providers.{path.parent.name}")
    for path in sorted(Path(protocol.__file__).parent.glob("*/__init__.py"))
}

PARTS: Mapping[str, type] = {
    name: part for name, part in vars(protocol).items() if getattr(part, "__module__", "") == protocol.__name__
}

EVERYONE = ("Codec", "Provider")
OPTIONAL: Mapping[str, tuple[str, ...]] = {
    "Declares": (
        "agent_framework", "anthropic", "bedrock", "cua", "google", "langchain", "mcp", "openai", "osworld",
    ),
    "Responds": ("agent_framework", "anthropic", "bedrock", "google", "langchain", "openai"),
    "HasTool": ("anthropic", "cua", "google", "inspect_ai", "langchain", "openai"),
    "HasComputer": ("google", "openai"),
    "ReadsShells": ("agent_framework", "anthropic", "bedrock", "openai"),
    "WritesShells": ("agent_framework", "openai"),
    "RunsCommands": ("agent_framework", "anthropic", "openai"),
    "HasShellExecutor": ("agent_framework", "openai"),
    "EditsFiles": ("anthropic", "bedrock"),
    "HasEditorTool": ("agent_framework", "anthropic"),
    "HasElementsTool": ("anthropic", "langchain", "openai"),
    "ReadsElements": ("anthropic", "google", "openai"),
    "HasHandOverTool": ("anthropic", "langchain", "openai"),
    "HandsOver": ("anthropic", "openai"),
}  # fmt: skip
"""Who has which part that not everyone has."""

OWN: Mapping[str, frozenset[str]] = {
    "agent_framework": frozenset(
        """
        calls_from calls_to note_to result_from result_to tool_from tool_to encode_calls
        shell_call_from shell_call_to shell_result_from shell_result_to shell_tool_to
        decode_content encode_content encode_call_content decode_content_result run_content run_content_async
        decode_shell_content encode_shell_content decode_shell_content_result run_shell_content
        """.split()  # noqa: SIM905 # a list of so many words
    ),
    "anthropic": frozenset({"betas", "declare_editor", "run_editor", "shell_tool", "tier", "toolset"}),
    "bedrock": frozenset({"declare_agent", "message_of", "tier"}),
    "google": frozenset({"on_grid", "run_calls", "run_calls_async", "thin"}),
    "langchain": frozenset({"tools"}),
    "mcp": frozenset({"server"}),
    "openai": frozenset({"input_filter", "note", "safety_check", "sync_computer"}),
    "osworld": frozenset({"accessibility_table", "accessibility_xml"}),
}
"""What a package has besides, for what its provider alone has."""

_EMPTY = inspect.Parameter.empty
_KINDS = inspect.Parameter


def _functions(part: type) -> dict[str, Any]:
    """What a part of the protocol says itself or by its bases."""
    return {
        name: function
        for base in reversed(part.__mro__)
        if base.__module__ == protocol.__name__
        for name, function in vars(base).items()
        if inspect.isfunction(function) and not name.startswith("_")
    }


def _has(package: str) -> dict[str, Any]:
    """What a package has to have of the protocol."""
    parts = [*EVERYONE, *(part for part, names in OPTIONAL.items() if package in names)]
    return {name: function for part in parts for name, function in _functions(PARTS[part]).items()}


def _public(package: ModuleType) -> dict[str, Callable[..., Any]]:
    return {name: found for name in package.__all__ if inspect.isfunction(found := getattr(package, name))}


CASES = [(package, name) for package in PACKAGES for name in _has(package)]


def _same_shape(function: Callable[..., Any], asked: Callable[..., Any]) -> None:
    """The parameters of the protocol, in its order; between them and `options`, keywords with defaults."""
    (_, *expected), given = (
        inspect.signature(asked).parameters.values(),
        list(inspect.signature(function).parameters.values()),
    )
    positional = [each for each in expected if each.kind not in {_KINDS.VAR_POSITIONAL, _KINDS.VAR_KEYWORD}]
    assert [each.replace(annotation=_EMPTY) for each in given[: len(positional)]] == [
        each.replace(annotation=_EMPTY) for each in positional
    ]
    rest = given[len(positional) :]
    if len(positional) < len(expected):
        options = rest.pop()
        assert (options.name, options.kind) == ("options", _KINDS.VAR_KEYWORD)
        assert options.annotation == "Unpack[SessionOptions]", "those of a session"
    assert all(each.kind is _KINDS.KEYWORD_ONLY and each.default is not _EMPTY for each in rest), rest
    for mine, its in zip(given, positional, strict=False):
        # A shell executor may take a function that opens a session, too.
        assert mine.annotation == its.annotation or mine.annotation.startswith(f"{its.annotation} |"), mine
    returned = inspect.signature(asked).return_annotation
    assert inspect.signature(function).return_annotation not in (_EMPTY, "Any", "object"), "what comes back has a type"
    assert returned in ("object", inspect.signature(function).return_annotation)
    assert inspect.iscoroutinefunction(function) == inspect.iscoroutinefunction(asked)


@pytest.mark.parametrize(("package", "name"), CASES)
def test_a_function_is_as_the_protocol_says(package: str, name: str) -> None:
    assert name in PACKAGES[package].__all__
    _same_shape(getattr(PACKAGES[package], name), _has(package)[name])


@pytest.mark.parametrize("module", [bedrock.agents, bedrock.agentcore])
@pytest.mark.parametrize("name", list(_functions(protocol.Codec)))
def test_bedrocks_other_interfaces_have_the_codec_too(module: ModuleType, name: str) -> None:
    _same_shape(getattr(module, name), _functions(protocol.Codec)[name])


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_has_nothing_besides_but_its_own(package: str) -> None:
    assert set(_public(PACKAGES[package])) == {*_has(package), *OWN.get(package, ())}
    everywhere = {name for part in PARTS.values() for name in _functions(part)}
    assert not OWN.get(package, frozenset()) & everywhere, "a name of the protocol is no package's own"


def test_a_name_of_two_packages_is_in_the_protocol() -> None:
    """Or it is the same function in both."""
    for name in {name for names in OWN.values() for name in names}:
        assert len({getattr(PACKAGES[package], name) for package, names in OWN.items() if name in names}) == 1, name


def test_every_part_is_asked_of_packages_that_exist() -> None:
    assert set(PARTS) == {*EVERYONE, *OPTIONAL}
    assert {name for names in OPTIONAL.values() for name in names} | set(OWN) <= set(PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_coroutine_has_the_parameters_of_its_function(package: str) -> None:
    """Their defaults and types too, but that of the desktop, and it returns the same."""
    public = _public(PACKAGES[package])
    for name, function in public.items():
        blocking = public.get(name.removesuffix("_async"))
        if not name.endswith("_async"):
            continue
        assert blocking is not None, f"{name} has a counterpart"
        assert inspect.iscoroutinefunction(function)
        mine, its = inspect.signature(function), inspect.signature(blocking)
        assert mine.return_annotation == its.return_annotation
        of_desktops = {"desktop": _EMPTY}
        assert [
            each.replace(annotation=of_desktops.get(each.name, each.annotation)) for each in mine.parameters.values()
        ] == [each.replace(annotation=of_desktops.get(each.name, each.annotation)) for each in its.parameters.values()]


@pytest.mark.parametrize("package", PACKAGES)
def test_one_call_is_answered_as_it_is_encoded(package: str) -> None:
    public = _public(PACKAGES[package])
    for run, encode in (("run", "encode"), ("run_shell", "encode_shell"), ("run_editor", "encode_editor")):
        if run in public:
            assert (
                inspect.signature(public[run]).return_annotation == inspect.signature(public[encode]).return_annotation
            )


@pytest.mark.parametrize(
    ("package", "name"), [(package, name) for package in PACKAGES for name in _public(PACKAGES[package])]
)
def test_a_docstring_names_every_parameter_it_lists(package: str, name: str) -> None:
    """A list of arguments is whole and in order; a function that has none says what it does in its first line."""
    function = getattr(PACKAGES[package], name)
    text = inspect.getdoc(function)
    assert text
    assert text.partition("\n")[0].rstrip().endswith((".", ":"))
    if "\nArgs:\n" in text:
        listed = re.findall(r"^    (\w+):", text.partition("\nArgs:\n")[2].partition("\n\n")[0], re.MULTILINE)
        assert listed == list(inspect.signature(function).parameters)
