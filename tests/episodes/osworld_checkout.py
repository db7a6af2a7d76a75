"""Task files in OSWorld's format, and a stand-in for upstream's package with its structure, for tests."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import requests

from deskhand.episodes.tasks.osworld.evaluators import load_table

HUB = "https://huggingface.co/files/"

METRICS = {
    "general": """
        import absent_package
        import docx
        from desktop_env.evaluators.metrics.utils import same

        def exact_match(result, rules):
            return 1.0 if same(result, rules["expected"]) else 0.0

        def compare_text_file(result, expected, **options):
            if result is None:
                return 0.0
            return 1.0 if open(result).read() == open(expected).read() else 0.0

        def check_list(result, rules):
            raise KeyError("an evaluator that fails")

        def literal_match(result, rules):
            while True:
                pass

        def fuzzy_match(result, rules):
            try:
                return absent_package.compare(result)
            except Exception:
                return 0.0

        def is_in_list(result, rules):
            return result
    """,
    "utils": """
        def same(one, other):
            return one == other
    """,
    "vlc": """
        from xml.etree import ElementTree

        def is_vlc_playing(actual_status_path, rule):
            with open(actual_status_path, "rb") as file:
                tree = ElementTree.fromstring(file.read().decode("utf-8"))
            if tree.find("state").text != "playing":
                return 0
            found = tree.find('information/category[@name="meta"]/info[@name="filename"]')
            return 1 if found is not None and found.text == rule["file_name"] else 0
    """,
    "slides": "raise ImportError('a module that no metric here needs')",
}
GETTERS = {
    "file": """
        import os

        def get_vm_file(env, config):
            data = env.controller.get_file(config["path"])
            if data is None:
                return None
            path = os.path.join(env.cache_dir, config["dest"])
            with open(path, "wb") as file:
                file.write(data)
            return path

        def get_cloud_file(env, config):
            return os.path.join(env.cache_dir, config["dest"])

        def get_cache_file(env, config):
            return os.path.join(env.cache_dir, config["path"])
    """,
    "general": """
        import requests

        def get_vm_command_line(env, config):
            print("what an evaluator prints is no message")
            address = f"http://{env.vm_ip}:{env.server_port}/execute"
            answer = requests.post(address, json={"command": config["command"], "shell": config.get("shell", False)})
            return answer.json()["output"]

        def get_history(env, config):
            return env.controller.execute_python_command("print(6 * 7)")["output"]

        def get_rule(env, config):
            return config["rules"]
    """,
    "info": """
        import os

        def get_vm_wallpaper(env, config):
            path = os.path.join(env.cache_dir, config["dest"])
            with open(path, "wb") as file:
                file.write(env.controller.get_vm_wallpaper() or b"")
            return path
    """,
    "vlc": """
        import os
        import requests

        def get_vlc_playing_info(env, config):
            path = os.path.join(env.cache_dir, config["dest"])
            address = f"http://{env.vm_ip}:{env.vlc_port}/requests/status.xml"
            answer = requests.get(address, auth=("", "password"))
            if answer.status_code != 200:
                return None
            with open(path, "wb") as file:
                file.write(answer.content)
            return path
    """,
}
EXPORTS = {
    "metrics": {
        "general": ("exact_match", "compare_text_file", "check_list", "literal_match", "fuzzy_match", "is_in_list"),
        "slides": ("check_transition",),
        "vlc": ("is_vlc_playing",),
    },
    "getters": {
        "file": ("get_vm_file", "get_cloud_file", "get_cache_file"),
        "general": ("get_vm_command_line", "get_history", "get_rule"),
        "info": ("get_vm_wallpaper",),
        "vlc": ("get_vlc_playing_info",),
    },
}
# The two methods that are taken from upstream's class, with the rest of the module out of reach.
ENVIRONMENT = """
    import gymnasium_that_is_missing

    class DesktopEnv(gymnasium_that_is_missing.Env):
        def _set_evaluator_info(self, task_config: Dict[str, Any]):
            self.evaluator = task_config["evaluator"]
            self.metric = getattr(metrics, self.evaluator["func"])
            self.result_getter = getattr(getters, "get_" + self.evaluator["result"]["type"])
            self.expected_getter = getattr(getters, "get_" + self.evaluator["expected"]["type"])

        def evaluate(self):
            self.setup_controller.setup(self.evaluator.get("postconfig", []), self.enable_proxy)
            if self.action_history[-1] == "FAIL":
                return 0
            result = self.result_getter(self, self.evaluator["result"])
            expected = self.expected_getter(self, self.evaluator["expected"])
            return self.metric(result, expected, **self.evaluator.get("options", {}))
"""


def task_data(id_: str = "t-1", **parts: Any) -> dict[str, Any]:
    """A task that compares a file of the home directory with one of the hub."""
    return {
        "id": id_,
        "snapshot": "os",
        "instruction": "Write the text.",
        "source": "",
        "config": [],
        "related_apps": ["os"],
        "proxy": False,
        "evaluator": {
            "func": "compare_text_file",
            "result": {"type": "vm_file", "path": "/home/user/Desktop/a.txt", "dest": "a.txt"},
            "expected": {"type": "cloud_file", "path": f"{HUB}gold.txt", "dest": "gold.txt"},
        },
        **parts,
    }


def write_checkout(root: Path, tasks: dict[str, list[dict[str, Any]]]) -> str:
    """Write `evaluation_examples` below a folder, and return the name for all its tasks."""
    examples = root / "evaluation_examples"
    for domain, each in tasks.items():
        (examples / "examples" / domain).mkdir(parents=True, exist_ok=True)
        for task in each:
            (examples / "examples" / domain / f"{task['id']}.json").write_text(json.dumps(task))
    listed = {domain: [task["id"] for task in each] for domain, each in tasks.items()}
    (examples / "test_all.json").write_text(json.dumps(listed))
    return f"osworld:{root}"


def write_upstream(root: Path) -> str:
    """Make an environment of Python with the stand-in, and return its interpreter."""
    packages = root / "packages"
    evaluators = packages / "desktop_env" / "evaluators"
    for kind, modules in (("metrics", METRICS), ("getters", GETTERS)):
        (evaluators / kind).mkdir(parents=True)
        lines = [f"from .{module} import {', '.join(names)}" for module, names in EXPORTS[kind].items()]
        (evaluators / kind / "__init__.py").write_text("\n".join(lines) + "\n")
        for module, source in modules.items():
            (evaluators / kind / f"{module}.py").write_text(_dedented(source))
    for folder in (packages / "desktop_env", evaluators):
        (folder / "__init__.py").write_text("raise ImportError('this is not to be run')\n")
    (packages / "desktop_env" / "desktop_env.py").write_text(_dedented(ENVIRONMENT))
    about = packages / f"desktop_env-{load_table().version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: desktop-env\nVersion: {load_table().version}\n")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", root / "venv"], check=True, timeout=120)
    [site] = (root / "venv" / "lib").glob("python*/site-packages")
    # The one package of the real ones that getters talk to the desktop with.
    (site / "stand_in.pth").write_text(f"{packages}\n{Path(requests.__file__).parents[1]}\n")
    return str(root / "venv" / "bin" / "python")


def _dedented(source: str) -> str:
    return textwrap.dedent(source).lstrip("\n")
