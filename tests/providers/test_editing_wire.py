"""The text editor's payloads and the texts that it changes, without a machine: what is read, refused, cut, left as it was."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand import ActionError, DeskhandTimeout, Desktop, DesktopLost, UnsupportedAction
from deskhand.backends.memory import MemoryBackend
from deskhand.machine.interface import Listing
from deskhand.providers import anthropic, bedrock
from deskhand.providers.anthropic.editing import SCHEMA, WITH_UNDO, WITHOUT_UNDO, edit_of
from deskhand.providers.editors import COMMANDS, TextEditor, carry_out_edit
from deskhand.providers.edits import Text, inserted, listed, numbered, replaced, text_of
from deskhand.providers.session import ModelSession
from deskhand.providers.values import EditAnswer, EditCall
from faults.scale import MUTATED_PAYLOADS
from providers.anthropic_helpers import accepted
from providers.bedrock_helpers import function, tool_use
from providers.strategies import damaged

INPUTS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"command": "view", "path": "/a"}, {}),
    ({"command": "view", "path": "/a", "view_range": [2, -1]}, {"lines": (2, -1)}),
    ({"command": "view", "path": "/a", "view_range": None}, {}),
    ({"command": "create", "path": "/a", "file_text": ""}, {"text": ""}),
    ({"command": "str_replace", "path": "/a", "old_str": "x", "new_str": "y"}, {"old": "x", "text": "y"}),
    ({"command": "str_replace", "path": "/a", "old_str": "x"}, {"old": "x"}),
    ({"command": "insert", "path": "/a", "insert_line": 0, "insert_text": "y"}, {"line": 0, "text": "y"}),
    ({"command": "insert", "path": "/a", "insert_line": 2.0, "new_str": "y"}, {"line": 2, "text": "y"}),
    ({"command": "undo_edit", "path": "/a"}, {}),
]


def block(given: Any, name: str = WITH_UNDO) -> dict[str, Any]:
    return {"type": "tool_use", "id": "toolu_1", "name": name, "input": given}


@pytest.mark.parametrize(("given_", "fields"), INPUTS, ids=str)
def test_every_input_is_read_by_every_interface(given_: dict[str, Any], fields: dict[str, Any]) -> None:
    wanted = EditCall(command=given_["command"], path="/a", name=WITH_UNDO, **fields)
    for made in (
        anthropic.decode_editor(block(given_)),
        bedrock.decode_editor(tool_use("toolu_1", WITH_UNDO, **given_)),
    ):
        assert made == EditCall(**{**{name: getattr(wanted, name) for name in wanted.__slots__}, "id": "toolu_1"})
    texts = {name: str(value) for name, value in given_.items() if value is not None}
    told = bedrock.agents.decode_editor(function(WITH_UNDO, **texts))
    assert (told.command, told.path, told.text, told.old, told.line, told.lines) == (
        *(wanted.command, wanted.path, wanted.text, wanted.old, wanted.line, wanted.lines),
    )
    if given_["command"] == "undo_edit":
        with pytest.raises(UnsupportedAction, match="use one of view, create, str_replace, insert"):
            anthropic.decode_editor(block(given_, WITHOUT_UNDO))
    else:
        assert anthropic.decode_editor(block(given_, WITHOUT_UNDO)).name == WITHOUT_UNDO


@pytest.mark.parametrize(
    ("given_", "why"),
    [
        ({}, "a command is a string"),
        ({"command": "fly", "path": "/a"}, "use one of view"),
        ({"command": "view"}, "path missing"),
        ({"command": "view", "path": 5}, "a path is a string"),
        ({"command": "view", "path": "/a", "view_range": [1]}, r"view_range is \[first, last\]"),
        ({"command": "view", "path": "/a", "view_range": "1-2"}, "view_range is a list"),
        ({"command": "view", "path": "/a", "view_range": [1, 2.5]}, "integer"),
        ({"command": "view", "path": "/a", "view_range": [True, 2]}, "number"),
        ({"command": "create", "path": "/a"}, "file_text missing"),
        ({"command": "create", "path": "/a", "file_text": ["x"]}, "file_text is a string"),
        ({"command": "create", "path": "/a", "file_text": "x", "old_str": "y"}, "create takes no old_str"),
        ({"command": "str_replace", "path": "/a", "new_str": "y"}, "old_str missing"),
        ({"command": "insert", "path": "/a", "insert_line": 1}, "give insert_text"),
        ({"command": "insert", "path": "/a", "insert_line": 1, "new_str": "a", "insert_text": "b"}, "no other text"),
        ({"command": "insert", "path": "/a", "insert_line": "1", "new_str": "a"}, "insert_line"),
        ({"command": "insert", "path": "/a", "insert_line": float("nan"), "new_str": "a"}, "insert_line"),
        ("view", "the editor's input is an object"),
    ],
)
def test_what_is_malformed_is_said_to_the_model(given_: Any, why: str) -> None:
    with pytest.raises(ActionError, match=why):
        edit_of(given_, name=WITH_UNDO, id=None, extra={})
    told = accepted(anthropic.run_editor(None, block(given_)))
    assert told["is_error"]
    assert told["content"][0]["text"]


def test_what_nobody_knows_goes_along() -> None:
    call = anthropic.decode_editor({**block({"command": "view", "path": "/a", "mood": "good"}), "cache": 1})
    assert call.extra == {"cache": 1, "input": {"mood": "good"}}
    with pytest.raises(ActionError, match="needs an id"):
        anthropic.run_editor(None, {"type": "tool_use", "name": WITH_UNDO, "input": {}})
    for reads, payload in (
        (anthropic.decode_editor, block({}, "bash")),
        (bedrock.decode_editor, tool_use("a", "bash")),
        (bedrock.agents.decode_editor, function("bash")),
    ):
        with pytest.raises(ActionError, match="a call of the text editor"):
            reads(payload)


def test_whatever_comes_is_a_call_or_an_error() -> None:
    for seed in range(MUTATED_PAYLOADS):
        payload = damaged(block(INPUTS[seed % len(INPUTS)][0]), seed)
        try:
            call = anthropic.decode_editor(payload)
        except ActionError:
            continue
        assert call.command in COMMANDS
        assert isinstance(call.path + call.text, str)


def test_versions_are_declared_by_name() -> None:
    assert anthropic.declare_editor(max_characters=500)["max_characters"] == 500
    assert anthropic.declare_editor(version="text_editor_20250429", max_characters=500) == {
        "type": "text_editor_20250429",
        "name": WITHOUT_UNDO,
    }
    with pytest.raises(ActionError, match="the versions of the text editor are"):
        anthropic.declare_editor(version="text_editor_20990101")
    assert SCHEMA["properties"]["command"]["enum"] == list(COMMANDS)


def test_the_answer_of_a_failure_is_an_error() -> None:
    answer = EditAnswer(text="no", id="toolu_1", name=WITH_UNDO, failed=True)
    assert accepted(anthropic.encode_editor(answer))["is_error"]
    assert bedrock.encode_editor(answer)["toolResult"]["status"] == "error"
    assert bedrock.agents.encode_editor(answer)["functionResult"]["responseState"] == "REPROMPT"


class Machine:
    """Files in a dictionary, some of which go wrong."""

    def __init__(self, **files: Any) -> None:
        self.files = {f"/{name}": data for name, data in files.items()}

    home = "/home/user"

    def cause(self, lost: DesktopLost) -> DesktopLost:
        return lost

    def loss(self) -> DesktopLost | None:
        return None

    def view_file(self, path: str, **_: Any) -> bytes:
        found = self.files[path]
        if isinstance(found, Exception):
            raise found
        return bytes(found)


def a_desktop(machine: Machine | None) -> Desktop:
    return Desktop(MemoryBackend(), inside=machine)  # type: ignore[arg-type] # only files are asked for


def test_a_lost_desktop_ends_it_and_a_slow_one_is_told() -> None:
    machine = Machine(gone=DesktopLost("closed", "it was closed"), slow=DeskhandTimeout("no answer for 20 s"))
    with a_desktop(machine) as desktop:
        editor = TextEditor(ModelSession(desktop))
        with pytest.raises(DesktopLost):
            carry_out_edit(editor, EditCall(command="view", path="/gone"), provider="x")
        answer = carry_out_edit(editor, EditCall(command="view", path="/slow"), provider="x")
    assert (answer.failed, answer.text) == (True, "no answer for 20 s")


class Slow(Machine):
    """Files that are read slowly enough for somebody to come in between, if anybody could."""

    def __init__(self, **files: bytes) -> None:
        super().__init__(**files)
        self.reading = threading.Semaphore(0)
        self.together = False

    def view_file(self, path: str, **_: Any) -> bytes:
        self.reading.release()
        data = bytes(self.files[path])
        # Whoever reads after us takes one more.
        self.together = self.together or (self.reading.acquire(timeout=0.2) and self.reading.acquire(timeout=0.2))
        return data

    def write_file(self, path: str, data: bytes, **_: Any) -> None:
        self.files[path] = data


def test_two_edits_of_one_file_at_once_lose_nothing() -> None:
    """A model's calls of one turn may be carried out in several threads."""
    machine = Slow(a=b"one two\n")
    with a_desktop(machine) as desktop:
        editor = TextEditor(desktop)
        threads = [
            threading.Thread(target=editor.replace, args=("/a", old, new)) for old, new in (("one", "1"), ("two", "2"))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert machine.files["/a"] == b"1 2\n"
    assert not machine.together


def test_a_limit_is_a_number() -> None:
    with a_desktop(Machine()) as desktop:
        for most in (0, -1, True, 1.5, "many"):
            with pytest.raises(ActionError, match="max_characters is a number above 0"):
                TextEditor(desktop, max_characters=most)  # type: ignore[arg-type] # on purpose
        for arguments in ((7, 1), ("/a", -1), ("/a", True), ("/a", 1.5)):
            with pytest.raises(ActionError, match="view_file: "):
                desktop.machine.view_file(arguments[0], limit=arguments[1])  # type: ignore[arg-type] # on purpose


def test_a_desktop_without_a_machine_says_so() -> None:
    with a_desktop(None) as desktop:
        answer = carry_out_edit(TextEditor(desktop), EditCall(command="view", path="/a"), provider="x")
    assert answer.failed
    assert "desktop.machine" in answer.text


# --- texts ---

_texts = st.text(st.sampled_from("ab \n\té☕"), max_size=30)


@given(_texts, st.data())
def test_a_replacement_changes_that_place_and_nothing_else(text: str, data: st.DataObject) -> None:
    old, new = data.draw(st.text(st.sampled_from("ab\n"), min_size=1, max_size=3)), data.draw(_texts)
    places = [place for place in range(len(text)) if text.startswith(old, place)]
    if len(places) != 1 or old == new:
        with pytest.raises(ActionError, match="nothing was changed"):
            replaced(Text(text), old, new, "/a")
        return
    made, said = replaced(Text(text), old, new, "/a")
    assert made.text == text[: places[0]] + new + text[places[0] + len(old) :]
    assert said.startswith("Successfully replaced text at exactly one location in /a.")


@given(_texts, _texts.filter(bool), st.integers(-1, 12))
def test_lines_are_inserted_between_lines(text: str, new: str, line: int) -> None:
    before = Text(text).lines
    if not 0 <= line <= len(before):
        with pytest.raises(ActionError, match="is not a line of /a: use 0 to"):
            inserted(Text(text), line, new, "/a")
        return
    made, said = inserted(Text(text), line, new, "/a")
    assert made.lines == [*before[:line], *Text(new).lines, *before[line:]]
    assert f" after line {line} of /a." in said


@given(_texts, st.booleans())
def test_a_text_comes_back_as_it_was(text: str, crlf: bool) -> None:  # noqa: FBT001
    data = (text.replace("\n", "\r\n") if crlf else text).encode()
    found = text_of(data, "/a")
    assert found.data == data
    assert found.text == text
    assert found.crlf is (crlf and "\n" in text)


def test_mixed_line_ends_are_left_alone() -> None:
    found = text_of(b"a\r\nb\nc\r", "/a")
    assert (found.crlf, found.lines) == (False, ["a\r", "b", "c\r"])
    made, _ = replaced(found, "b\nc", "x", "/a")
    assert made.data == b"a\r\nx\r"


def test_what_is_shown_is_bounded_and_says_so() -> None:
    text = Text("".join(f"line {number}\n" for number in range(1, 101)))
    assert numbered(text, None, most=20) == (
        "1: line 1\n2: line 2\n(lines 1 to 2 of 100 are shown: ask for others with view_range)"
    )
    assert numbered(text, (99, 200), most=100) == "99: line 99\n100: line 100\n(the file ends at line 100)"
    assert numbered(text, (99, -1), most=100) == "99: line 99\n100: line 100"
    assert numbered(Text("x" * 50), None, most=10) == "1: xxxxxxxxxx (this line is cut: it has 50 characters)"
    assert numbered(Text(""), None, most=10) == numbered(Text(""), (1, -1), most=10) == "(the file is empty)"
    for lines in ((0, 1), (101, 101), (3, 2), (1, -2), (2, 0)):
        with pytest.raises(ActionError, match="does not fit the file: it has 100 lines"):
            numbered(text, lines, most=10)
    many = Text("".join("a\n" for _ in range(100)))
    with pytest.raises(ActionError, match=r"20 matches .* 19, 20 and more: nothing was changed"):
        replaced(many, "a", "b", "/a")
    with pytest.raises(ActionError, match="old_str is empty"):
        replaced(many, "", "b", "/a")
    _, said = inserted(many, 50, "b\n" * 1000, "/a")
    assert len(said) < 1000, "of a large edit its beginning is shown"


def test_names_cannot_pretend_to_be_lines() -> None:
    said = listed(Listing(("a\nb/", "\x1b[31m", "é"), more=True), "/d")
    assert said.splitlines()[1:] == ["'a\\nb/'", "'\\x1b[31m'", "é", "(there are more)"]
