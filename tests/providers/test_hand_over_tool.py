"""A model asks a person for help, by the tool that providers' packages have for it where that is offered."""

from __future__ import annotations

import asyncio
import contextlib
import io
import signal
import threading
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from agents import Agent, RunConfig, Runner
from agents.testing import ScriptedModel, function_call
from mcp import types
from openai.types.responses.response_input_item_param import FunctionCallOutput
from PIL import Image, ImageChops
from pydantic import TypeAdapter

import deskhand
from deskhand import ActionError, AsyncDesktop, AuditLog, ClassPolicy, Guard, Move, PolicyDenied
from deskhand._native import Interrupted
from deskhand.backends.memory import MemoryBackend
from deskhand.desktop.access import core_of
from deskhand.desktop.desktop import Desktop
from deskhand.errors import Closed, UnsupportedAction
from deskhand.providers import anthropic, cua, google, langchain, mcp, openai
from deskhand.providers.hand_over_tool import decode_hand_over, encode_hand_over, hand_over_schema
from deskhand.providers.payload import picture_of_base64, picture_of_url
from deskhand.providers.session import ModelSession
from deskhand.providers.values import HandOver, ProviderCall, step_name
from providers.anthropic_helpers import Api, accepted, member
from providers.openai_helpers import said
from providers.strategies import VIEWPORT
from providers.test_mcp import with_client
from unit.held import LIMIT, Call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from deskhand.providers.values import Picture

REASON = "please solve the CAPTCHA"

Answer = tuple[str, "Picture | None", bool]
Way = "Callable[..., Answer]"


@pytest.fixture(scope="module")
def real() -> Iterator[Desktop]:
    with deskhand.launch(size=(400, 300), elements=False) as desktop:
        yield desktop


@pytest.fixture
def desktop() -> Iterator[Desktop]:
    with Desktop(MemoryBackend((320, 200))) as desktop:
        yield desktop


def until_asked(desktop: Desktop) -> Any:
    pause = threading.Event()
    for _ in range(LIMIT * 200):
        if requests := desktop.control.requests:
            return requests[-1]
        pause.wait(0.005)
    raise AssertionError("nobody asked for help")


@contextlib.contextmanager
def a_person(desktop: Desktop, work: Callable[[Any], object]) -> Iterator[None]:
    """Somebody who waits for a request, and does `work` with it."""
    person = Call(lambda: work(until_asked(desktop)))
    yield
    result = person.end()
    assert not isinstance(result, BaseException), result


def helps(desktop: Desktop, note: str = "done") -> Callable[[Any], None]:
    def work(_: Any) -> None:
        with desktop.control.take("Ada") as hold:
            hold.desktop.perform(Move((7, 9)), settle=False)
            hold.release(note)

    return work


def by_mcp(session: ModelSession, **arguments: Any) -> Answer:
    result = mcp.run(session, {"name": "hand_over", "arguments": arguments}, hand_over=True)
    types.CallToolResult.model_validate(result)
    first, *rest = result["content"]
    picture = picture_of_base64(rest[0]["data"], "image/png") if rest else None
    return first["text"], picture, result["isError"]


def by_langchain(session: ModelSession, **arguments: Any) -> Answer:
    tool = langchain.hand_over_tool(session)
    message = tool.invoke({"type": "tool_call", "name": "hand_over", "args": arguments, "id": "call_1"})
    assert message.tool_call_id == "call_1"
    first, *rest = message.content
    picture = picture_of_base64(rest[0]["base64"], "image/png") if rest else None
    return first["text"], picture, message.status == "error"


def by_openai(session: ModelSession, **arguments: Any) -> Answer:
    payload = function_call("hand_over", arguments, call_id="call_1").model_dump()
    output = openai.run_hand_over(session, payload)
    TypeAdapter(FunctionCallOutput).validate_python(output, strict=True)
    assert output["call_id"] == "call_1"
    first, *rest = output["output"]
    return first["text"], picture_of_url(rest[0]["image_url"]) if rest else None, not rest


def by_anthropic(session: ModelSession, **arguments: Any) -> Answer:
    result = accepted(anthropic.run_hand_over(session, uses("call_1", **arguments)))
    assert result["tool_use_id"] == "call_1"
    first, *rest = result["content"]
    picture = picture_of_base64(rest[0]["source"]["data"], "image/png") if rest else None
    return first["text"], picture, result.get("is_error", False)


def uses(id: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "hand_over", "input": given}


WAYS = [by_mcp, by_langchain, by_openai, by_anthropic]


@pytest.mark.parametrize("ask", WAYS)
def test_a_person_helps(real: Desktop, ask: Way) -> None:
    session = ModelSession(real)
    with a_person(real, helps(real, "solved it")):
        text, picture, failed = ask(session, reason=REASON, wait=LIMIT)
    assert not failed
    assert text.startswith("Ada had control of this desktop for ")
    assert text.endswith(" s and says: solved it")
    assert picture is not None
    # It is of now: the pointer is where the person has put it.
    shown = Image.open(io.BytesIO(picture.data)).convert("RGB")
    assert ImageChops.difference(shown, real.screenshot().image()).getbbox() is None
    assert tuple(real.pointer) == (7, 9)
    assert real.perform(settle=False).notes == (), "the note was told once"


@pytest.mark.parametrize("ask", WAYS)
def test_a_person_declines(desktop: Desktop, ask: Way) -> None:
    with a_person(desktop, lambda request: desktop.control.decline(request, "Ada", "do without")):
        text, picture, failed = ask(ModelSession(desktop), reason=REASON, wait=LIMIT)
    assert (text, failed) == (f"Ada declined the request for help ({REASON}) and says: do without", False)
    assert picture is not None


@pytest.mark.parametrize("ask", WAYS)
def test_nobody_is_there_and_then_somebody_is(desktop: Desktop, ask: Way) -> None:
    session = ModelSession(desktop)
    for _ in range(2):
        text, picture, failed = ask(session, reason=REASON, wait=0)
        assert not failed
        assert text.startswith("No one has answered the request for help in 0 s. It stays open.")
        assert picture is not None
    (request,) = desktop.control.requests
    assert request.reason == REASON
    waits = Call(lambda: ask(session, reason=REASON, wait=LIMIT))
    until_waits(desktop)
    helps(desktop)(request)
    text, _, _ = waits.end()
    assert text.endswith("says: done")
    # Somebody comes after the call has given up, and the model asks again before it has looked.
    ask(session, reason=REASON, wait=0)
    helps(desktop)(None)
    text, _, _ = ask(session, reason=REASON, wait=600)
    assert text.endswith(
        "and says: done\nThat was before this request, which was not made: call hand_over again if help is "
        "still needed."
    )
    assert desktop.control.requests == ()


@pytest.mark.parametrize("ask", WAYS)
def test_what_a_model_is_told_while_a_person_has_control(desktop: Desktop, ask: Way) -> None:
    session = ModelSession(desktop)
    with desktop.control.take("Ada"):
        text, picture, failed = ask(session, reason=REASON, wait=0)
        assert text.startswith("Ada has control of this desktop, and has not handed it back in 0 s.")
        assert (picture is None, failed) == (False, False)
    with desktop.control.take("Ada", private=True):
        text, picture, failed = ask(session, reason=REASON, wait=0)
        assert "Ada has had control of this desktop since" in text
        assert "others may neither act nor look" in text
        assert (picture, failed) == (None, True)


def test_another_call_may_have_had_the_note(desktop: Desktop) -> None:
    def takes_the_note(request: Any) -> None:
        # In one turn at the desktop: the call that waits looks after this.
        with core_of(desktop).lock:
            desktop.control.decline(request, "Ada")
            assert desktop.perform(settle=False).notes

    with a_person(desktop, takes_the_note):
        result = ModelSession(desktop).hand_over({"reason": REASON, "wait": LIMIT})
    assert result.text == "The request for help has ended."


@pytest.mark.parametrize("ask", WAYS)
def test_it_goes_through_the_gate_and_into_the_log(desktop: Desktop, tmp_path: Path, ask: Way) -> None:
    denying = ModelSession(desktop, policy=ClassPolicy(allow=["input"], deny=["observe"]))
    text, picture, failed = ask(denying, reason=REASON, wait=0)
    assert "denies hand_over" in text
    assert (picture, failed) == (None, True)
    assert desktop.control.requests == ()

    path = tmp_path / "audit.jsonl"
    with AuditLog(path) as log:
        judged = desktop.also(Guard(policy=ClassPolicy(allow=["observe"]), audit=log))
        with a_person(desktop, helps(desktop, "solved it")):
            ask(ModelSession(judged, provider="mine"), reason=REASON, wait=LIMIT)
    written = path.read_text()
    for word in (REASON, '"hand_over"', '"ask"', '"take"', '"release"', "solved it", "mine"):
        assert word in written


@pytest.mark.parametrize("ask", WAYS)
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "reason is a string"),
        ({"reason": 7}, "reason is a string"),
        ({"reason": " \n\x00"}, "the reason is empty"),
        ({"reason": REASON, "wait": -1}, r"wait is a number of seconds, 0...600"),
        ({"reason": REASON, "wait": 1e9}, r"wait is a number of seconds, 0...600"),
        ({"reason": REASON, "wait": "long"}, "wait"),
        ({"reason": REASON, "to": "Ada"}, "no 'to'"),
    ],
)
def test_wrong_arguments_are_told(desktop: Desktop, ask: Way, arguments: dict[str, Any], reason: str) -> None:
    text, _, failed = ask(ModelSession(desktop), **arguments)
    assert reason in text
    assert failed
    assert desktop.control.requests == ()


@pytest.mark.parametrize("ask", WAYS)
def test_what_a_model_writes_is_cleaned_and_bounded(desktop: Desktop, ask: Way) -> None:
    session = ModelSession(desktop)
    ask(session, reason="\x1b[2Jpay\u202e now\r\n" + "x" * 100_000, wait=0)
    (request,) = desktop.control.requests
    assert len(request.reason) == 2000
    assert request.reason.startswith("[2Jpay now x")
    assert request.reason.isprintable()
    for number in range(15):
        desktop.hand_over(str(number))
    text, _, failed = ask(session, reason="one more", wait=0)
    assert "16 requests are pending" in text
    assert failed


# --- it is offered by whoever asks for it ---


def test_it_is_off_unless_it_is_offered(desktop: Desktop) -> None:
    def names(tools: list[dict[str, Any]]) -> list[str]:
        return [tool.get("function", tool)["name"] for tool in tools]

    for listed in (mcp.declare, langchain.declare):
        assert "hand_over" not in names(listed(desktop))
        assert names(listed(desktop, hand_over=True)) == [*names(listed(desktop)), "hand_over"]
        assert names(listed(desktop, single=True, hand_over=True)) == ["computer", "elements", "hand_over"]
    assert names(mcp.declare(desktop, programs=True, hand_over=True))[-2:] == ["start", "hand_over"]
    assert "hand_over" not in [tool.name for tool in langchain.tools(desktop)]
    refused = mcp.run(desktop, {"name": "hand_over", "arguments": {"reason": REASON}})
    assert refused["isError"]
    assert "hand_over=True" in refused["content"][0]["text"]
    call = {"name": "hand_over", "args": {"reason": REASON}, "id": "c"}
    assert langchain.run(desktop, call)["status"] == "error"
    assert (
        langchain.run(desktop, {**call, "args": {"reason": REASON, "wait": 0}}, hand_over=True)["status"] == "success"
    )
    assert [request.reason for request in desktop.control.requests] == [REASON]
    with pytest.raises(ActionError, match="call_id"):
        openai.run_hand_over(desktop, {"type": "function_call", "name": "hand_over", "arguments": "{}"})
    answered = openai.run_hand_over(desktop, {"type": "function_call", "call_id": "c", "arguments": '{"reason'})
    assert "not JSON" in answered["output"][0]["text"]


@pytest.mark.parametrize("step", [HandOver(REASON), HandOver(REASON, 0), HandOver(REASON, 7.5)])
def test_a_call_comes_back_as_it_was(step: HandOver) -> None:
    arguments = encode_hand_over(step)
    jsonschema.Draft202012Validator.check_schema(hand_over_schema())
    jsonschema.validate(arguments, hand_over_schema())
    assert decode_hand_over(arguments) == step
    call = ProviderCall(steps=(step,), viewport=VIEWPORT, name="hand_over")
    assert mcp.decode(mcp.encode_call(call), VIEWPORT) == call
    assert langchain.decode(langchain.encode_call(call), VIEWPORT) == call
    assert step_name(step) == "hand_over"
    for provider in (cua, google):
        with pytest.raises(UnsupportedAction, match="hand_over"):
            provider.encode_call(call)


# --- what ends the wait ---


@pytest.mark.parametrize("judged", [False, True])
@pytest.mark.parametrize(
    ("end", "raised"),
    [
        (lambda d: d.stop("enough"), PolicyDenied),
        (lambda d: d.close(), Closed),
        (lambda d: d.interrupt(), Interrupted),
    ],
)
def test_the_wait_ends_with_the_desktop(
    desktop: Desktop, end: Callable[[Desktop], object], raised: type[BaseException], *, judged: bool
) -> None:
    session = ModelSession(desktop.also(Guard()) if judged else desktop)
    waits = Call(lambda: session.hand_over({"reason": REASON, "wait": 600}))
    until_waits(desktop)
    end(desktop)
    result = waits.end()
    if raised is PolicyDenied:
        assert result.denied
        assert "enough" in result.error
    else:
        assert isinstance(result, raised)


def until_waits(desktop: Desktop) -> None:
    """Until a call waits for a person."""
    pause = threading.Event()
    for _ in range(LIMIT * 200):
        if core_of(desktop).control.help._waiting and core_of(desktop).attempts:
            return
        pause.wait(0.005)
    raise AssertionError("no call waits")


def test_ctrl_c_ends_the_wait(desktop: Desktop) -> None:
    def press(_: Any) -> None:
        until_waits(desktop)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    with a_person(desktop, press), pytest.raises(KeyboardInterrupt):
        ModelSession(desktop).hand_over({"reason": REASON, "wait": 600})
    assert len(desktop.control.requests) == 1, "a person can still answer"
    desktop.screenshot()


@pytest.mark.parametrize("judged", [False, True])
def test_cancelling_ends_the_wait(desktop: Desktop, *, judged: bool) -> None:
    there = AsyncDesktop(desktop.also(Guard()) if judged else desktop)

    async def main() -> None:
        call = {"name": "hand_over", "arguments": {"reason": REASON, "wait": 600}}
        waits = asyncio.create_task(mcp.run_async(there, call, hand_over=True))
        await asyncio.to_thread(until_waits, desktop)
        # A person can take control meanwhile.
        hold = await asyncio.to_thread(desktop.control.take, "Ada", private=True)
        waits.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await waits
        assert len(desktop.control.requests) == 1
        await asyncio.to_thread(hold.release)

    asyncio.run(main())


# --- in the loops of the SDKs ---


def test_by_a_client_of_mcp(real: Desktop) -> None:
    server = mcp.server(AsyncDesktop(real), hand_over=True)
    listed = with_client(server, lambda client: client.list_tools()).tools
    assert listed[-1].name == "hand_over"

    async def ask(client: Any) -> Any:
        return await client.call_tool("hand_over", {"reason": REASON, "wait": LIMIT})

    with a_person(real, helps(real, "solved it")):
        result = with_client(server, ask)
    assert not result.is_error
    assert result.content[0].text.endswith("says: solved it")
    assert result.content[1].type == "image"
    (note,) = result.structured_content["notes"]
    assert note in result.content[0].text


def test_by_openai_agents(desktop: Desktop) -> None:
    session = ModelSession(desktop, settle=False)
    model = ScriptedModel(
        [
            [function_call("hand_over", {"reason": REASON, "wait": LIMIT}, call_id="c1")],
            [function_call("hand_over", '{"reason', call_id="c2")],
            [said("done")],
        ]
    )
    agent = Agent(name="desk", model=model, tools=[openai.tool(session), openai.hand_over_tool(session)])
    with a_person(desktop, helps(desktop, "solved it")):
        result = asyncio.run(Runner.run(agent, "go", run_config=RunConfig(tracing_disabled=True)))
    assert result.final_output == "done"
    helped, wrong = [item.raw_item["output"] for item in result.new_items if item.type == "tool_call_output_item"]
    assert [part["type"] for part in helped] == ["input_text", "input_image"]
    assert helped[0]["text"].endswith("says: solved it")
    assert "not JSON" in str(wrong)


def test_in_anthropics_loops(desktop: Desktop) -> None:
    session = ModelSession(desktop)
    api = Api([uses("a", reason=REASON, wait=LIMIT)], [member("left_click", "b", coordinate=[3, 4])], [uses("c")])
    runner = api.client().beta.messages.tool_runner(
        model="claude-opus-5-5",
        max_tokens=100,
        tools=[anthropic.toolset(session, confirm=lambda _: True), anthropic.hand_over_tool(session)],
        messages=[{"role": "user", "content": "Do it."}],
    )
    with a_person(desktop, helps(desktop, "solved it")):
        runner.until_done()
    (first,), _, (last,) = api.results
    assert api.requests[0]["tools"][1] == anthropic.declare_hand_over()
    assert first["content"][0]["text"].endswith("says: solved it")
    assert first["content"][1]["type"] == "image"
    assert last["is_error"]
    assert "reason is a string" in last["content"][0]["text"]

    async def ask() -> Any:
        there = AsyncDesktop(desktop)
        tool = anthropic.hand_over_tool(there)
        other = langchain.hand_over_tool(there)
        call = {"type": "tool_call", "name": "hand_over", "args": {"reason": REASON, "wait": 0}, "id": "call_1"}
        payload = function_call("hand_over", {"reason": REASON, "wait": 0}, call_id="c").model_dump()
        return [
            (await tool.call({"reason": REASON, "wait": 0}))[0]["text"],
            (await other.ainvoke(call)).content[0]["text"],
            (await openai.run_hand_over_async(there, payload))["output"][0]["text"],
            (await anthropic.run_hand_over_async(there, uses("d", reason=REASON, wait=0)))["content"][0]["text"],
        ]

    texts = asyncio.run(ask())
    assert all(text.startswith("No one has answered") for text in texts)
