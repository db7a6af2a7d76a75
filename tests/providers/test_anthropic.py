"""Claude's computer on a real desktop: every action, through the SDK's own loop, answered by what its own types accept."""

from __future__ import annotations

import asyncio
import base64
import io
import os
import re
import runpy
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anthropic as sdk
import pytest
from anthropic.tools import ToolError
from anthropic.types.beta import BetaMessage
from PIL import Image

import deskhand
from deskhand._core.geometry import Size
from deskhand._core.sizes import Fit
from deskhand.aio.desktop import AsyncDesktop
from deskhand.errors import ActionError, DesktopLost
from deskhand.providers import anthropic
from deskhand.providers.anthropic import LATEST, NOT_EXECUTED, TOOLSET
from deskhand.providers.session import AsyncModelSession, ModelSession
from faults.helpers import server_pid
from providers.anthropic_helpers import Api, accepted, flat, member, tool_use
from providers.helpers import LocalSession
from providers.screen import SIZE, at_rest, observed, told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from integration.observer import Observer

FIRST, SECOND = "computer_20241022", "computer_20250124"
RESIZED = "size has changed"


def _yes(_: object) -> bool:
    return True


@pytest.fixture(scope="module")
def stage() -> Iterator[tuple[deskhand.Desktop, Observer]]:
    with observed() as both:
        yield both


@pytest.fixture
def desktop(stage: tuple[deskhand.Desktop, Observer]) -> deskhand.Desktop:
    return stage[0]


@pytest.fixture
def observer(stage: tuple[deskhand.Desktop, Observer]) -> Observer:
    at_rest(*stage)
    return stage[1]


def _click(button: int, at: str, count: int = 1) -> list[str]:
    return [f"{sign}{button}@{at}" for _ in range(count) for sign in "+-"]


def _picture(result: dict[str, Any]) -> Image.Image:
    (image,) = [block for block in result["content"] if block["type"] == "image"]
    assert image["source"]["type"] == "base64"
    return Image.open(io.BytesIO(base64.b64decode(image["source"]["data"])))


def _text(result: dict[str, Any]) -> str:
    content = result["content"]
    return content if isinstance(content, str) else "\n".join(b["text"] for b in content if b["type"] == "text")


HELD = ["+Control_L", "+Shift_L"], ["-Shift_L", "-Control_L"]

# Each member, what arrives at the desktop, and what the model reads.
MEMBERS: list[tuple[dict[str, Any], list[str], str]] = [
    (member("key", text="ctrl+s"), ["+Control_L", "+s", "-s", "-Control_L"], "Pressed ctrl+s."),
    (member("key", text="Tab", repeat=2), ["+Tab", "-Tab"] * 2, "Pressed Tab."),
    (member("hold_key", text="w", duration=0), ["+w", "-w"], "Held w for 0s."),
    (member("type", text="hi"), ["+h", "-h", "+i", "-i"], "Typed."),
    (member("cursor_position"), [], "X=100,Y=100"),
    (member("mouse_move", coordinate=[40, 50]), [], "Moved the mouse."),
    (member("left_mouse_down"), ["+1@100,100"], "Left mouse button pressed."),
    (member("left_mouse_up"), ["+1@100,100", "-1@100,100"], "Left mouse button released."),
    (member("left_click", coordinate=[40, 50]), _click(1, "40,50"), "Clicked."),
    (member("left_click"), _click(1, "100,100"), "Clicked."),
    (member("left_click", text="ctrl+shift"), [*HELD[0], *_click(1, "100,100"), *HELD[1]], "Clicked."),
    (
        member("left_click_drag", start_coordinate=[40, 50], coordinate=[90, 60]),
        ["+1@40,50", "-1@90,60"],
        "Dragged.",
    ),
    (member("right_click", coordinate=[41, 50]), _click(3, "41,50"), "Right-clicked."),
    (member("middle_click", coordinate=[42, 50]), _click(2, "42,50"), "Middle-clicked."),
    (member("double_click", coordinate=[430, 50]), _click(1, "430,50", 2), "Double-clicked."),
    (member("triple_click", coordinate=[540, 50]), _click(1, "540,50", 3), "Triple-clicked."),
    (
        member("scroll", coordinate=[40, 50], scroll_direction="down", scroll_amount=3),
        _click(5, "40,50", 3),
        "Scrolled down.",
    ),
    (member("scroll", scroll_direction="left", scroll_amount=1), _click(6, "100,100"), "Scrolled left."),
    (member("wait", duration=0), [], "Waited 0s."),
    (member("screenshot"), [], ""),
    (member("zoom", region=[10, 20, 70, 50]), [], ""),
]


def test_all_members_are_tried() -> None:
    names = sdk.types.beta.BetaComputerMemberName.__args__  # type: ignore[attr-defined]
    assert {block["name"] for block, _, _ in MEMBERS} == set(names)


@pytest.mark.parametrize(
    ("block", "events", "text"), MEMBERS, ids=lambda value: str(value.get("name")) if isinstance(value, dict) else ""
)
def test_member_by_the_sdk_and_by_our_own_loop(
    desktop: deskhand.Desktop, observer: Observer, block: dict[str, Any], events: list[str], text: str
) -> None:
    def answered(answer: Callable[[Any], Any]) -> dict[str, Any]:
        if block["name"] == "left_mouse_up":
            desktop.perform(deskhand.LeftMouseDown(), settle=False)
        result = answer(tool_use(block))
        assert told(observer) == events
        at_rest(desktop, observer)
        return accepted(result)

    by_sdk = answered(anthropic.toolset(desktop, confirm=_yes).tool_result)
    assert _text(by_sdk) == text
    assert by_sdk["toolset_name"] == "computer"
    assert any(each["type"] == "image" for each in by_sdk["content"]) is (block["name"] in {"screenshot", "zoom"})
    if block["name"] == "screenshot":
        assert _picture(by_sdk).size == SIZE
    if block["name"] == "zoom":
        assert _picture(by_sdk).size == (60, 30)
    assert answered(lambda call: anthropic.run(desktop, call)) == by_sdk


def _conversation(api: Api, desktop: deskhand.Desktop | ModelSession, **options: Any) -> list[list[dict[str, Any]]]:
    toolset = anthropic.toolset(desktop, **{"confirm": _yes, **options})
    runner = api.client().beta.messages.tool_runner(
        model="claude-opus-5-5", max_tokens=100, tools=[toolset], messages=[{"role": "user", "content": "Do it."}]
    )
    assert runner.until_done().stop_reason == "end_turn"
    return api.results


def test_the_sdks_loop_runs_a_batch_in_order(desktop: deskhand.Desktop, observer: Observer) -> None:
    batch = [
        member("left_click", "a", coordinate=[200, 200]),
        member("type", "b", text="x"),
        member("screenshot", "c"),
    ]
    api = Api(batch, [member("cursor_position", "d")])
    first, second = _conversation(api, desktop)
    assert told(observer) == [*_click(1, "200,200"), "+x", "-x"]
    assert [result["tool_use_id"] for result in first] == ["a", "b", "c"]
    assert _picture(first[2]).size == SIZE
    assert _text(second[0]) == "X=200,Y=200"
    assert api.requests[0]["tools"] == [anthropic.declare(desktop)] == [{"type": TOOLSET}]
    assert "computer-use" not in api.betas[0]


@pytest.mark.parametrize("own", [False, True])
def test_a_batch_ends_at_its_first_failure(desktop: deskhand.Desktop, observer: Observer, own: bool) -> None:  # noqa: FBT001
    batch = [
        member("type", "a", text="x"),
        member("left_click", "b", coordinate=[1280, 5]),
        member("type", "c", text="y"),
        member("screenshot", "d"),
    ]
    results = anthropic.respond(desktop, batch) if own else _conversation(Api(batch), desktop)[0]
    assert told(observer) == ["+x", "-x"]
    assert [result.get("is_error", False) for result in results] == [False, True, True, True]
    assert "point (1280, 5) is outside of 1280x800" in _text(results[1])
    for result in results[2:]:
        assert (
            _text(accepted(result)) == NOT_EXECUTED == "Not executed: an earlier computer action in this turn failed."
        )
        assert result["toolset_name"] == "computer"


def test_coroutines(desktop: deskhand.Desktop, observer: Observer) -> None:
    api = Api([member("left_click", "a", coordinate=[200, 200]), member("screenshot", "b")])
    asked: list[str] = []

    async def confirm(context: Any) -> bool:
        asked.append(context.member)
        return True

    async def work() -> None:
        beside = AsyncDesktop(desktop)
        toolset = anthropic.toolset(beside, confirm=confirm)
        async with api.async_client() as client:
            runner = client.beta.messages.tool_runner(
                model="claude-opus-5-5",
                max_tokens=100,
                tools=[toolset],
                messages=[{"role": "user", "content": "Do it."}],
            )
            await runner.until_done()
        answer = await anthropic.run_async(AsyncModelSession(beside), member("key", text="Tab"))
        assert _text(answer) == "Pressed Tab."
        (turn,) = await anthropic.respond_async(beside, [member("key", text="a")])
        assert _text(turn) == "Pressed a."
        beside.detach()

    asyncio.run(work())
    (results,) = api.results
    assert _picture(results[1]).size == SIZE
    assert asked == ["left_click", "screenshot"]
    assert told(observer) == [*_click(1, "200,200"), "+Tab", "-Tab", "+a", "-a"]


# --- who may do what ---


def test_the_keyboard_needs_somebody_who_confirms(desktop: deskhand.Desktop) -> None:
    with pytest.raises(sdk.tools.ToolsetConfigError, match="confirm"):
        anthropic.toolset(desktop, confirm=None)  # type: ignore[call-overload]


@pytest.mark.parametrize("answer", [lambda _: False, lambda _: None, lambda _: 1, lambda _: 1 / 0])
def test_what_is_not_confirmed_is_not_done(
    desktop: deskhand.Desktop, observer: Observer, answer: Callable[[Any], Any]
) -> None:
    (results,) = _conversation(Api([member("type", "a", text="x"), member("left_click", "b")]), desktop, confirm=answer)
    assert told(observer) == []
    assert "ermission" in _text(results[0])
    assert _text(results[1]) == NOT_EXECUTED


def test_confirm_sees_what_is_asked(desktop: deskhand.Desktop, observer: Observer) -> None:
    seen: list[Any] = []
    _conversation(Api([member("type", "a", text="x")]), desktop, confirm=lambda context: seen.append(context) or False)
    assert (seen[0].member, seen[0].input.text, seen[0].tool_use.id) == ("type", "x", "a")
    assert told(observer) == []


def test_a_disabled_member_is_declared_and_refused(desktop: deskhand.Desktop, observer: Observer) -> None:
    api = Api([member("type", "a", text="x")])
    kept: dict[str, Any] = {"cache_control": {"type": "ephemeral"}}
    off = {"type": {"enabled": False}}
    (results,) = _conversation(api, desktop, configs=off, tool_configs=kept)
    assert api.requests[0]["tools"] == [anthropic.declare(desktop, fields={"configs": off, **kept})]
    assert api.requests[0]["tools"] == [{"type": TOOLSET, "configs": off, **kept}]
    assert results[0]["is_error"]
    assert told(observer) == []


# --- what goes wrong is told, and the conversation goes on ---


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (member("left_click", coordinate=[5, 800]), r"outside of 1280x800"),
        (member("key", text="Retrun"), "did you mean Return"),
        (member("zoom", region=[5, 5, 5, 5]), "x1 above x0"),
        (member("wait", duration=301), "0...300 seconds"),
        (member("left_click", coordinate=[1, 2, 3]), "x, y"),
        (member("fly"), "fly"),
        (member("type", text="\ufdd0"), "U\\+FDD0"),
    ],
)
def test_errors_are_told_in_words(
    desktop: deskhand.Desktop, observer: Observer, block: dict[str, Any], words: str
) -> None:
    toolset = anthropic.toolset(desktop, confirm=_yes)
    for result in (toolset.tool_result(tool_use(block)), anthropic.run(desktop, block)):
        assert accepted(result)["is_error"] is True  # type: ignore[arg-type]
        assert re.search(words, _text(result))  # type: ignore[arg-type]
    assert told(observer) == []


@pytest.mark.parametrize("block", [member("left_click", coordinate="here"), flat("fly"), flat("wait")])
def test_what_cannot_be_read_is_answered_by_its_id(desktop: deskhand.Desktop, block: dict[str, Any]) -> None:
    result = accepted(anthropic.run(desktop, block))
    assert result["tool_use_id"] == "toolu_1"
    assert result["is_error"]
    assert ("toolset_name" in result) is ("toolset_name" in block)


def test_without_an_id_nothing_is_done(desktop: deskhand.Desktop, observer: Observer) -> None:
    with pytest.raises(ActionError, match="needs an id"):
        anthropic.respond(desktop, [member("type", text="x"), {**member("type", text="y"), "id": None}])
    assert told(observer) == []


def test_a_lost_desktop_ends_the_loop() -> None:
    with deskhand.launch(size=(200, 100)) as gone:
        toolset = anthropic.toolset(gone, confirm=_yes)
        assert gone.display is not None
        os.kill(server_pid(gone.display), signal.SIGKILL)
        api = Api([member("screenshot")], [member("screenshot")])
        runner = api.client().beta.messages.tool_runner(
            model="claude-opus-5-5", max_tokens=100, tools=[toolset], messages=[{"role": "user", "content": "Look."}]
        )
        with pytest.raises(DesktopLost) as caught:
            runner.until_done()
        assert len(api.requests) == 1
        assert isinstance(caught.value, sdk.tools.ToolsetUsageError)
        with pytest.raises(DesktopLost):
            anthropic.run(gone, member("screenshot"))


def test_a_closed_desktop_is_told() -> None:
    with deskhand.launch(size=(200, 100)) as closed:
        toolset = anthropic.toolset(closed, confirm=_yes)
    result = accepted(toolset.tool_result(tool_use(member("screenshot"))))  # type: ignore[arg-type]
    assert result["is_error"]
    assert "closed" in _text(result)


# --- pictures and points ---


def test_pictures_are_as_large_as_the_models_take_them() -> None:
    with deskhand.launch(size=(2560, 1600)) as large:
        standard = ModelSession(large, size="anthropic")
        seen = anthropic.run(standard, member("screenshot"))
        width, height = _picture(seen).size
        assert max(width, height) <= 1568
        assert -(-width // 28) * -(-height // 28) <= 1568
        assert anthropic.declare(large, version=LATEST)["display_width_px"] == width
        high = _picture(anthropic.run(large, member("screenshot"), size=anthropic.tier("claude-opus-5-5")))
        assert 1568 < max(high.size) <= 2000
        # A part is as sharp as the screen is, and not one to point into.
        part = anthropic.run(standard, member("zoom", region=[0, 0, width // 2, height // 2]))
        assert _picture(part).size == (large.size[0] // 2, large.size[1] // 2)
        # All of it is more than a model takes, so that the limits hold for it as well.
        assert _picture(anthropic.run(standard, member("zoom", region=[0, 0, width, height]))).size == (width, height)
        anthropic.run(standard, member("mouse_move", coordinate=[width - 1, height - 1]))
        assert Size(2560, 1600).width - 2 <= large.pointer.x < 2560
        assert _text(anthropic.run(standard, member("cursor_position"))) == f"X={width - 1},Y={height - 1}"


def test_a_screen_that_changed_its_size_is_told() -> None:
    with deskhand.launch(size=(1000, 700)) as changing:
        toolset = anthropic.toolset(changing, confirm=_yes)

        def answer(block: dict[str, Any]) -> dict[str, Any]:
            return accepted(toolset.tool_result(tool_use(block)))  # type: ignore[arg-type]

        assert _picture(answer(member("screenshot"))).size == (1000, 700)
        changing.resize((800, 600))
        assert RESIZED in _text(answer(member("key", text="a")))
        assert RESIZED not in _text(answer(member("key", text="a")))
        assert _picture(answer(member("screenshot"))).size == (800, 600)
        changing.resize((640, 480))
        failed = answer(member("left_click", coordinate=[700, 500]))
        assert failed["is_error"]
        assert RESIZED in _text(failed)


# --- the single tools ---


@pytest.mark.parametrize("version", [FIRST, SECOND, LATEST])
def test_single_tool_in_the_sdks_loop(desktop: deskhand.Desktop, observer: Observer, version: str) -> None:
    turns = [
        [flat("mouse_move", "a", coordinate=[20, 30])],
        [flat("left_click", "b")],
        [flat("key", "c", text="Retrun")],
        [flat("screenshot", "d")],
    ]
    api = Api(*turns)
    tool = anthropic.tool(desktop, version=version, size=Fit(640, 400))
    runner = api.client().beta.messages.tool_runner(
        model="claude-opus-4-7",
        max_tokens=100,
        tools=[tool],
        betas=anthropic.betas(version),
        messages=[{"role": "user", "content": "Do it."}],
    )
    runner.until_done()
    (declared,) = api.requests[0]["tools"]
    assert (declared["type"], declared["name"]) == (version, "computer")
    assert (declared["display_width_px"], declared["display_height_px"]) == (640, 400)
    assert ("enable_zoom" in declared) is (version == LATEST)
    assert f"computer-use-{version[9:13]}-{version[13:15]}-{version[15:]}" in api.betas[0].split(",")
    results = [result for (result,) in api.results]
    assert all("toolset_name" not in result for result in results)
    # As in Anthropic's own implementation, what an action led to is shown at once; an error is text.
    assert [_picture(result).size for result in (results[0], results[1], results[3])] == [(640, 400)] * 3
    assert results[2]["is_error"]
    assert "did you mean Return" in _text(results[2])
    assert told(observer) == _click(1, "41,61")


FLAT: list[tuple[str, dict[str, Any], list[str]]] = [
    (FIRST, flat("left_click_drag", coordinate=[90, 60]), ["+1@100,100", "-1@90,60"]),
    (FIRST, flat("double_click"), _click(1, "100,100", 2)),
    (FIRST, flat("key", text="Down Down"), ["+Down", "-Down"] * 2),
    (SECOND, flat("left_click", coordinate=[5, 6], key="shift"), ["+Shift_L", *_click(1, "5,6"), "-Shift_L"]),
    (SECOND, flat("scroll", coordinate=[5, 6], scroll_direction="up", scroll_amount=1), _click(4, "5,6")),
    (SECOND, flat("hold_key", text="a", duration=0.05), ["+a", "-a"]),
    (SECOND, flat("triple_click", coordinate=[600, 6]), _click(1, "600,6", 3)),
    (LATEST, flat("zoom", region=[0, 0, 50, 40]), []),
    (LATEST, flat("wait", duration=0.01), []),
]


@pytest.mark.parametrize(("version", "block", "events"), FLAT)
def test_single_tools(
    desktop: deskhand.Desktop, observer: Observer, version: str, block: dict[str, Any], events: list[str]
) -> None:
    result = accepted(anthropic.run(desktop, block, version=version))
    assert told(observer) == events
    assert _picture(result).size == ((50, 40) if block["input"]["action"] == "zoom" else SIZE)
    assert [each["type"] for each in anthropic.run(desktop, flat("cursor_position"), pictures=False)["content"]] == [
        "text"
    ]


def test_there_is_no_single_toolset(desktop: deskhand.Desktop) -> None:
    with pytest.raises(ActionError, match=r"toolset\(\)"):
        anthropic.tool(desktop, version=TOOLSET)


# --- the shell, and whole answers ---


def _bash(id: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "bash", "input": given}


def test_the_shell_in_the_sdks_loop() -> None:
    api = Api(
        [_bash("a", command="cd /tmp; greeting=hello")],
        [_bash("b", command='echo "$greeting from $PWD"')],
        [_bash("c", command="false")],
        [_bash("d", restart=True)],
        [_bash("e", command='echo "[$greeting]"')],
        [_bash("f")],
    )
    with LocalSession() as session:
        api.client().beta.messages.tool_runner(
            model="claude-opus-5-5",
            max_tokens=100,
            tools=[anthropic.shell_tool(session)],
            messages=[{"role": "user", "content": "Do it."}],
        ).until_done()
    results = [result for (result,) in api.results]
    assert [_text(result) for result in results[:5]] == [
        "(no output)",
        "hello from /tmp",
        "(exit code 1)",
        "tool has been restarted.",
        "[]",
    ]
    assert [result.get("is_error", False) for result in results] == [False] * 5 + [True]


def test_the_shell_for_coroutines() -> None:
    with LocalSession() as session:
        tool = anthropic.shell_tool(session, is_async=True)

        async def work() -> Any:
            assert await tool.call({"command": "(exit 3)"}) == [{"type": "text", "text": "(exit code 3)"}]  # type: ignore[misc]
            with pytest.raises(ToolError, match="command or restart"):
                await tool.call({})  # type: ignore[misc]
            return await tool.call({"command": "echo yes"})  # type: ignore[misc]

        assert asyncio.run(work()) == [{"type": "text", "text": "yes"}]


def test_a_whole_answer(desktop: deskhand.Desktop, observer: Observer) -> None:
    message = BetaMessage.model_validate(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-opus-5-5",
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
            "content": [
                {"type": "text", "text": "I will."},
                member("left_click", "a", coordinate=[5, 5]),
                _bash("b", command="echo here"),
                {"type": "tool_use", "id": "c", "name": "yours", "input": {}},
                # A tool of somebody's that has a member's name.
                {"type": "tool_use", "id": "d", "name": "left_click", "input": {"coordinate": [1, 1]}},
                member("screenshot", "e"),
            ],
        }
    )
    with LocalSession() as session:
        results = anthropic.respond(desktop, message, shell=session)
    assert [result["tool_use_id"] for result in map(accepted, results)] == ["a", "b", "e"]
    assert _text(results[1]) == "here"
    assert told(observer) == _click(1, "5,5")
    assert anthropic.respond(desktop, {"role": "assistant", "content": "Nothing to do."}) == []


def test_the_example() -> None:
    folder = Path(__file__).parents[2] / "examples"
    example = runpy.run_path(str(folder / "anthropic_agent.py"))
    api = Api([member("type", "a", text="x"), member("screenshot", "b")], [member("screenshot", "c")])
    asked: list[str] = []
    said = example["main"]("Look.", api.client(), lambda context: bool(asked.append(context.member)))
    assert said == "That is all."
    assert asked == ["type", "screenshot"]
    assert [[result.get("is_error") for result in turn] for turn in api.results] == [[True, True], [True]]
    assert len((folder / "anthropic_agent.py").read_text().splitlines()) <= 40
