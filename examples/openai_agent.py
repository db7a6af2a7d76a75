"""A model of OpenAI's works at a desktop of its own: python examples/openai_agent.py "Write a haiku into the editor"."""

from __future__ import annotations

import sys
from typing import Any

import deskhand
from deskhand.providers import openai as deskhand_openai
from deskhand.providers.session import ModelSession

MODEL = "gpt-5.4"
TURNS = 50


def main(task: str, client: Any = None) -> str:
    """Have a task done, and return what the model says at its end."""
    if client is None:
        from openai import OpenAI  # noqa: PLC0415 # needs its key on creation: OPENAI_API_KEY

        client = OpenAI()
    with deskhand.launch() as desktop:
        model_session = ModelSession(desktop, size="openai")
        request: dict[str, Any] = {"model": MODEL, "tools": [deskhand_openai.declare(model_session)]}
        response = client.responses.create(**request, input=task)
        for _ in range(TURNS):
            answers = deskhand_openai.respond(model_session, response)
            if not answers:
                break
            response = client.responses.create(**request, input=answers, previous_response_id=response.id)
    return str(response.output_text)


if __name__ == "__main__":
    print(main(" ".join(sys.argv[1:])))
