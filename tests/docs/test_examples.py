"""The examples of the README and of the pages run as they stand. `docs/coming-from.md` has tests of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from containers.helpers import minimal_image

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted(set(ROOT.glob("docs/*.md")) - {ROOT / "docs/coming-from.md"})]
OWN_PROVIDER = """data:image/png;base64,
{'error': 'point (900, 200) is outside of 640x400: x must be 0...639, y 0...399; take coordinates from the latest screenshot'}
{'error': "there is no 'jump': click or type"}
"""
# What the examples of each page print, in their order; the README's ends with the rectangles.
PRINTED = {
    "README.md": ["True True "],
    "desktops.md": [
        "menuitem File True\nhello\n",
        "",
        "Save As\nhello\n",
        "True\nhello again\n",
        "True True\n[]\n",
        "text Press Return ocr\n",
        "True Point(x=20, y=30)\n",
        "hello from /usr 1 error\n",
        "Size(width=1280, height=800)\n",
    ],
    "faq.md": ["keyboard\n['notes']\n", "((4, '＠'),)\n"],
    "own-backend.md": ["True [(100, 50, 8, 8)]\n"],
    "own-provider.md": [OWN_PROVIDER],
    "policies.md": [
        "denied\n",
        "input: 'transfer 5 to Ada'\nit was asked about: no\n",
        "allowed\n\nallowed\n\n",
        "please log in\nAda\nI logged you in\n",
        "['perform']\n",
    ],
    "providers.md": [
        "{'type': 'computer'} data:image/png;base64,\n",
        "LeftClick(xy=(640, 400), element=None, modifiers=()) left_click\ntoolu_1 ['text']\n",
    ],
    "start-agents.md": ["computer_call_output data:image/png;base64,\n", "1280 800\nkeypress\n"],
    "start-containers.md": ["True True\nhello\n"],
    "watching.md": ["[('Ada', ['approve', 'control', 'watch'])]\n", "True\n", "", "https://console.example/desk/\n"],
}


def examples(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


def run(example: str, folder: Path, environment: dict[str, str]) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", example],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_first_example_runs_twice_in_one_home(tmp_path: Path, environment: dict[str, str]) -> None:
    (example,) = examples(ROOT / "README.md")
    for _ in range(2):
        assert run(example, tmp_path, environment).startswith(PRINTED["README.md"][0])
    with Image.open(tmp_path / "after.png") as frame:
        assert frame.size == (1280, 800)


def test_each_page_with_examples_is_run() -> None:
    assert {page.name: len(examples(page)) for page in PAGES if examples(page)} == {
        name: len(printed) for name, printed in PRINTED.items()
    }


@pytest.mark.parametrize("page", [page for page in PAGES[1:] if examples(page)], ids=lambda page: page.stem)
def test_the_examples_of_a_page_print_what_they_say(page: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    if page.stem == "start-containers":
        minimal_image()
    assert [run(example, tmp_path, environment) for example in examples(page)] == PRINTED[page.name]
