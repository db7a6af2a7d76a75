"""Runs upstream's evaluators in upstream's environment; `evaluating.py` starts it with that environment's Python.

A line of JSON on standard input is the job, and one on standard output the score. In between, what an evaluator asks of the
desktop goes out as a line, and the answer comes in as one. The code of metrics and getters, and that which joins several of
them, is upstream's as it is; only what surrounds it is made here:

- A module is imported alone, without the packages' `__init__`, which import all of them.
- A package that is missing is an import that succeeds, and an evaluation that fails when it uses it.
- `env` asks through the pipe.
"""

from __future__ import annotations

import ast
import base64
import builtins
import importlib.abc
import importlib.machinery
import importlib.util
import json
import logging
import os
import resource
import sys
import traceback
import typing
from typing import Any, ClassVar, NoReturn

GUEST = "desktop.invalid"
PORTS = {"server_port": 5000, "chromium_port": 9222, "vlc_port": 8080}
PACKAGE = "desktop_env"
MEMORY = 8 << 30
FILE_SIZE = 1 << 30


class Missing(BaseException):
    """A package is missing. It is no Exception: evaluators turn those into a score of 0."""


# --- the pipe ---


class Pipe:
    """The lines to and from the driver. What evaluators print goes to standard error."""

    def __init__(self) -> None:
        self._in = os.fdopen(os.dup(0), "rb")
        self._out = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)

    def read(self) -> Any:
        line = self._in.readline()
        if not line:
            os._exit(3)
        return json.loads(line)

    def write(self, message: Any) -> None:
        self._out.write(json.dumps(message).encode() + b"\n")
        self._out.flush()

    def ask(self, call: str, **arguments: Any) -> Any:
        self.write({"call": call, "arguments": arguments})
        answer = self.read()
        if "error" in answer:
            raise RuntimeError(f"{call}: {answer['error']}")
        value = answer["value"]
        return base64.b64decode(value["bytes"]) if isinstance(value, dict) and set(value) == {"bytes"} else value


# --- imports ---


class Placeholder:
    """Stands for a part of a package that is missing."""

    def __init__(self, name: str, imports: Imports) -> None:
        self.__dict__.update(_name=name, _imports=imports)

    def _use(self) -> NoReturn:
        self._imports.missing.add(self._name.partition(".")[0])
        raise Missing(f"the package {self._name.partition('.')[0]} is missing")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if not self._imports.depth:
            self._use()
        return Placeholder(f"{self._name}.{name}", self._imports)

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        self._use()

    def __getitem__(self, _: Any) -> Any:
        return self

    def __or__(self, _: Any) -> Any:
        return self

    __ror__ = __or__

    def __mro_entries__(self, _: Any) -> tuple[type, ...]:
        return ()


class Imports(importlib.abc.MetaPathFinder):
    """Finds upstream's modules, each by itself, and gives them placeholders for packages that are missing."""

    def __init__(self) -> None:
        self.depth = 0
        self.missing: set[str] = set()
        found = importlib.util.find_spec(PACKAGE)
        if found is None or found.origin is None:
            raise ModuleNotFoundError(f"there is no {PACKAGE} in {sys.prefix}")
        self.root: str = os.path.dirname(found.origin)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.partition(".")[0] != PACKAGE:
            return None
        place = os.path.join(self.root, *name.split(".")[1:])
        if os.path.isdir(place):
            spec = importlib.machinery.ModuleSpec(name, Bare(self, place), is_package=True)
            spec.submodule_search_locations = [place]
            return spec
        if os.path.isfile(place + ".py"):
            return importlib.util.spec_from_file_location(name, place + ".py", loader=Loader(name, place + ".py", self))
        return None

    def source(self, *parts: str) -> str:
        with open(os.path.join(self.root, *parts), encoding="utf-8") as file:
            return file.read()

    def forgiving(self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        self.depth += 1
        try:
            return builtins.__import__(name, globals, locals, fromlist, level)
        except ModuleNotFoundError as error:
            top = name.partition(".")[0]
            if level or top == PACKAGE or (error.name or "").partition(".")[0] != top or self.there(top):
                raise
            return Placeholder(name if fromlist else top, self)
        finally:
            self.depth -= 1

    @staticmethod
    def there(top: str) -> bool:
        return importlib.util.find_spec(top) is not None


class Bare(importlib.abc.Loader):
    """Makes a package without running its `__init__`; the names that it would export are imported when they are used."""

    def __init__(self, imports: Imports, place: str) -> None:
        self._imports = imports
        self._place = place

    def create_module(self, spec: Any) -> None:
        return None

    def exec_module(self, module: Any) -> None:
        exports = {}
        path = os.path.join(self._place, "__init__.py")
        if os.path.isfile(path):
            with open(path, encoding="utf-8") as file:
                for node in ast.parse(file.read()).body:
                    if isinstance(node, ast.ImportFrom) and node.level == 1:
                        exports.update({each.asname or each.name: (node.module, each.name) for each in node.names})

        def find(name: str) -> Any:
            if name not in exports:
                raise AttributeError(f"desktop-env has no {module.__name__}.{name}")
            owner, there = exports[name]
            return getattr(importlib.import_module(f"{module.__name__}.{owner}"), there)

        module.__getattr__ = find


class Loader(importlib.machinery.SourceFileLoader):
    """Runs a module of upstream, whose own imports forgive what is missing."""

    def __init__(self, name: str, path: str, imports: Imports) -> None:
        super().__init__(name, path)
        self._imports = imports

    def exec_module(self, module: Any) -> None:
        module.__builtins__ = {**vars(builtins), "__import__": self._imports.forgiving}
        self._imports.depth += 1
        try:
            exec(compile(self.get_data(self.path), self.path, "exec"), module.__dict__)
        finally:
            self._imports.depth -= 1


# --- the environment ---


class Controller:
    """What upstream's `PythonController` does, through the pipe."""

    CALLS: ClassVar[dict[str, tuple[str, ...]]] = {
        "execute_python_command": ("command",),
        "get_accessibility_tree": (),
        "get_file": ("file_path",),
        "get_terminal_output": (),
        "get_vm_desktop_path": (),
        "get_vm_directory_tree": ("path",),
        "get_vm_platform": (),
        "get_vm_screen_size": (),
        "get_vm_wallpaper": (),
        "get_vm_window_size": ("app_class_name",),
    }

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def __getattr__(self, name: str) -> Any:
        if name not in self.CALLS:
            raise AttributeError(f"the desktop has no {name}")
        names = self.CALLS[name]

        def call(*values: Any, **named: Any) -> Any:
            return self._pipe.ask(name, **dict(zip(names, values, strict=False)), **named)

        return call


class SetupController:
    """Has the driver carry out the post-configuration."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def setup(self, _steps: Any, _use_proxy: Any = None) -> bool:
        return bool(self._pipe.ask("setup"))


class Base:
    """The attributes of upstream's `DesktopEnv` that evaluators read."""

    def __init__(self, job: Any, pipe: Pipe) -> None:
        self.cache_dir = job["cache_dir"]
        self.action_history = job["action_history"]
        self.controller = Controller(pipe)
        self.setup_controller = SetupController(pipe)
        self.vm_ip = GUEST
        self.vm_platform = "Linux"
        self.enable_proxy = self.current_use_proxy = self.is_environment_used = False
        self.__dict__.update(PORTS)

    @property
    def vm_screen_size(self) -> Any:
        return self.controller.get_vm_screen_size()


def make_environment(imports: Imports) -> Any:
    """A class with the two methods of upstream's `DesktopEnv` that find and join evaluators."""
    wanted = {"_set_evaluator_info", "evaluate"}
    tree = ast.parse(imports.source("desktop_env.py"))
    whole = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "DesktopEnv")
    kept = [node for node in whole.body if isinstance(node, ast.FunctionDef) and node.name in wanted]
    space: dict[str, Any] = {
        name: getattr(typing, name) for name in ("Any", "Callable", "Dict", "List", "Optional", "Tuple", "Union")
    }
    space["logger"] = logging.getLogger("desktopenv.env")
    for name in ("metrics", "getters"):
        space[name] = importlib.import_module(f"{PACKAGE}.evaluators.{name}")
    # The name of a metric that is never called: a task that cannot be done is graded by what the agent said.
    space["metrics"].infeasible = lambda: None
    exec(compile(ast.Module(list[ast.stmt](kept), []), os.path.join(imports.root, "desktop_env.py"), "exec"), space)
    return type("DesktopEnv", (Base,), {name: space[name] for name in wanted})


def mount_guest(pipe: Pipe) -> None:
    """Let requests to the desktop's own server go through the pipe; nothing listens anywhere."""
    try:
        requests: Any = importlib.import_module("requests")
    except ModuleNotFoundError:
        return

    class Guest(requests.adapters.BaseAdapter):  # type: ignore[misc] # of another environment
        def send(self, request: Any, **_: Any) -> Any:
            answer = requests.Response()
            answer.url, answer.request = request.url, request
            path = request.path_url.partition("?")[0]
            if request.method == "POST" and path in {"/execute", "/setup/execute"}:
                job = json.loads(request.body)
                value = pipe.ask("execute", command=job.get("command"), shell=job.get("shell", False))
                answer.status_code, answer._content = 200, json.dumps(value).encode()
            elif request.method == "GET" and path == "/accessibility":
                value = pipe.ask("get_accessibility_tree")
                answer.status_code, answer._content = 200, json.dumps({"AT": value}).encode()
            elif request.method == "GET" and path == "/requests/status.xml":
                answer.status_code, answer._content = 200, pipe.ask("get_vlc_status").encode()
            else:
                answer.status_code, answer._content = 404, b"{}"
            return answer

        def close(self) -> None:
            pass

    begin = requests.Session.__init__

    def begun(self: Any) -> None:
        begin(self)
        self.mount(f"http://{GUEST}:", Guest())

    requests.Session.__init__ = begun


def as_number(score: Any) -> float:
    """The score as a number; a text of digits is none."""
    if isinstance(score, (str, bytes)):
        raise TypeError(f"its score is {score[:100]!r}, not a number")
    return float(score)


def main() -> None:
    pipe = Pipe()
    for limit, value in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_FSIZE, FILE_SIZE)):
        resource.setrlimit(limit, (value, value))
    logging.basicConfig(stream=sys.stderr, level=logging.INFO)
    job = pipe.read()
    imports = Imports()
    sys.meta_path.insert(0, imports)
    mount_guest(pipe)
    try:
        environment = make_environment(imports)(job, pipe)
        environment._set_evaluator_info({"evaluator": job["evaluator"]})
        answer: dict[str, Any] = {"score": as_number(environment.evaluate())}
    except BaseException as error:  # whatever an evaluator raises is its failure
        at = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{os.path.basename(at.filename)}, line {at.lineno}"
        answer = {"failed": f"{type(error).__name__}: {error} ({place})"[:2000]}
    pipe.write({**answer, "missing": sorted(imports.missing)})


if __name__ == "__main__":
    main()
