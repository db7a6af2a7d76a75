"""Calls, results, events and chunks as values; their fields are held by tests/compatibility."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys

import pytest

from compatibility.declared import calute
from compatibility.table import declared_names
from deskhand import execution
from deskhand.execution import (
    AgentSwitchTrigger,
    Completion,
    ExecutionStatus,
    RequestFunctionCall,
    ResponseResult,
)

# Every class, and how many of its fields must be given.
CLASSES = {
    name: sum(field.default is field.default_factory is dataclasses.MISSING for field in dataclasses.fields(kind))
    for name, kind in vars(calute).items()
    if dataclasses.is_dataclass(kind)
}


@pytest.mark.parametrize("name", CLASSES)
def test_every_class_takes_its_fields_by_place_and_is_mutable(name: str) -> None:
    kind = getattr(execution, name)
    fields = [field.name for field in dataclasses.fields(kind)]
    # Of a call, the two names of its id cannot differ.
    values = ["the id" if field in ("id", "call_id") else f"a {field}" for field in fields]
    made = kind(*values)
    assert [getattr(made, field) for field in fields] == values
    assert copy.deepcopy(made) == made == pickle.loads(pickle.dumps(made))
    setattr(made, fields[0], "another")
    assert getattr(made, fields[0]) == "another"
    with pytest.raises(TypeError):
        kind(*values, "too many")


@pytest.mark.parametrize("name", CLASSES)
def test_what_is_made_is_made_anew_for_each(name: str) -> None:
    kind = getattr(execution, name)
    one, other = (kind(*range(CLASSES[name])) for _ in range(2))
    for field in dataclasses.fields(kind):
        if field.default_factory is not dataclasses.MISSING:
            assert getattr(one, field.name) is not getattr(other, field.name)


def test_the_first_of_two_names_is_the_members_own() -> None:
    assert ExecutionStatus.FAILED is ExecutionStatus.FAILURE
    assert ExecutionStatus("failure").name == "FAILURE"
    assert AgentSwitchTrigger.CAPABILITY_REQUIRED is AgentSwitchTrigger.CAPABILITY_BASED
    assert AgentSwitchTrigger("capability").name == "CAPABILITY_BASED"


def test_a_call_has_one_id_under_two_names() -> None:
    made = RequestFunctionCall("search", {})
    assert made.id
    assert made.call_id == made.id != RequestFunctionCall("search", {}).id
    assert RequestFunctionCall("search", {}, id="a").call_id == "a"
    given = RequestFunctionCall("search", {}, id="a", call_id="b")
    assert (given.id, given.call_id) == ("b", "b"), "call_id wins"
    given.id = "c"
    assert (given.id, given.call_id) == ("c", "c")
    given.call_id = "d"
    assert (given.id, given.call_id) == ("d", "d")
    given.call_id = None
    assert (given.id, given.call_id) == ("d", "d"), "a call always has one"
    assert dataclasses.asdict(given)["call_id"] == "d"
    assert dataclasses.replace(given, call_id="e").id == "e"


def test_a_response_is_carried_as_it_is() -> None:
    response = object()
    result = ResponseResult("said", response, Completion(final_content="said"))
    assert result.response is response


def test_every_public_name_is_there_and_the_list_is_sorted() -> None:
    assert execution.__all__ == sorted(execution.__all__)
    assert set(declared_names(calute)) <= set(execution.__all__)
    assert all(hasattr(execution, name) for name in execution.__all__)


def test_no_sdk_is_imported() -> None:
    code = (
        "import sys, deskhand.execution; print([n for n in ('openai', 'google', 'google.genai') if n in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
