"""Gemini works on a desktop: python examples/google_agent.py "Open the editor and write a haiku".

Needs `pip install 'deskhand[google]'` and GEMINI_API_KEY. The desktop runs on this machine; use `deskhand.launch("docker")`
in place of `deskhand.launch()` to keep it in a container.
"""

import sys

from google import genai
from google.genai import types

import deskhand
from deskhand.providers import google as deskhand_google
from deskhand.providers.session import ModelSession


def main(task: str, client: genai.Client | None = None, model: str = "gemini-3.5-flash") -> str:
    """Have Gemini do a task; returns its last text."""
    client = client or genai.Client()
    with deskhand.launch(size=(1440, 900)) as desktop:
        desktop.start("xterm")
        model_session = ModelSession(desktop)
        first = [types.Part(text=task), types.Part.from_bytes(data=model_session.look().data, mime_type="image/png")]
        contents = [types.Content(role="user", parts=first)]
        config = types.GenerateContentConfig(tools=[deskhand_google.declare(desktop)])
        while True:
            turn = client.models.generate_content(model=model, contents=contents, config=config)
            answer = deskhand_google.respond(model_session, turn)
            if answer is None:
                return turn.text or ""
            if any("denied" in part.function_response.response for part in answer.parts):
                return "Gemini wants a confirmation, and there is no one to ask."
            contents += [turn.candidates[0].content, answer]
            deskhand_google.thin(contents)


if __name__ == "__main__":
    print(main(sys.argv[1]))
