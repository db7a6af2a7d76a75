"""Tasks in a terminal: xterm with bash. Their oracles type, and only the shell on the screen changes files."""

from __future__ import annotations

import hashlib
import io
import itertools
import re
import tarfile
import zlib
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

from deskhand.episodes.tasks.suite._acting import press, type_text, wait_until
from deskhand.episodes.tasks.suite._applications import open_terminal, prepare
from deskhand.episodes.tasks.suite._material import (
    ITEMS,
    TOPICS,
    UNICODE,
    access_log,
    people,
    private_addresses,
    sentence,
)
from deskhand.episodes.tasks.task import Grade, Task, TaskLimits

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

    from deskhand.episodes.tasks.context import TaskContext
    from deskhand.episodes.tasks.task import Level

# Limits for reading an archive: those of this task are smaller, and a larger one must not fill the memory.
_MOST_MEMBERS, _LARGEST_MEMBER = 50, 1 << 20
_LARGEST_ARCHIVE = 16 << 20
_ADDRESS = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?!\.?\d)")


def _command(context: TaskContext, line: str, done: Callable[[], bool]) -> None:
    """Type a command line, and wait for its effect."""
    type_text(context.desktop, f"{line}\n")
    wait_until(done, f"what `{line}` does")


class _InTerminal(Task):
    tags: ClassVar[tuple[str, ...]] = ("terminal",)
    programs: ClassVar[tuple[str, ...]] = ("xterm",)


class CountLines(_InTerminal):
    """Count the lines of a log with a word, and write the number into a file."""

    name = "terminal-count-lines"

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        word = random.choice(("ERROR", "WARNING", "TIMEOUT", "REFUSED"))
        marked, others = random.randint(30, 180), random.randint(200, 500)
        plain = [w for w in ("ERROR", "WARNING", "TIMEOUT", "REFUSED", "INFO", "DEBUG") if w != word]
        lines = [f"{word} {sentence(random)}" for _ in range(marked)]
        lines += [f"{random.choice(plain)} {sentence(random)}" for _ in range(others)]
        random.shuffle(lines)
        return {"log": f"{random.choice(TOPICS)}.log", "word": word, "lines": lines, "count": marked}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        return (
            f"Count the lines of ~/logs/{parameters['log']} that begin with {parameters['word']}, and write the number, and "
            "nothing else, into the file ~/answer.txt."
        )

    def setup(self, context: TaskContext) -> None:
        prepare(context)
        context.write(f"logs/{context.parameters['log']}", "\n".join(context.parameters["lines"]) + "\n")
        open_terminal(context)

    def evaluate(self, context: TaskContext) -> Grade:
        found = context.text("answer.txt")
        right = found is not None and found.strip() == str(context.parameters["count"])
        return Grade(
            float(right), f"answer.txt has {found!r}, wanted is {context.parameters['count']}", {"answer": found}
        )

    def oracle(self, context: TaskContext) -> None:
        line = f"grep -c '^{context.parameters['word']}' logs/{context.parameters['log']} > answer.txt"
        _command(context, line, lambda: bool(context.text("answer.txt")))


class MakeTree(_InTerminal):
    """Make nested folders, and a file with one line in the innermost."""

    name = "terminal-make-tree"

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        folders = [f"{item}-{random.randint(10, 99)}" for item in random.sample(ITEMS, 3)]
        siblings = random.sample(TOPICS, random.randint(2, 4))
        return {
            "path": "/".join(folders),
            "siblings": siblings,
            "file": f"{random.choice(TOPICS)}.txt",
            "line": f"{people(random, 1)[0]}: {sentence(random)} {random.choice(UNICODE)}",
        }

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        siblings = ", ".join(parameters["siblings"][:-1]) + f" and {parameters['siblings'][-1]}"
        return (
            f"Make the folder ~/{parameters['path']} with the folders {siblings} in it, and beside those a file "
            f"{parameters['file']} which has this one line:\n\n    {parameters['line']}"
        )

    def setup(self, context: TaskContext) -> None:
        prepare(context)
        open_terminal(context)

    def evaluate(self, context: TaskContext) -> Grade:
        path, file = context.parameters["path"], context.parameters["file"]
        found, text = context.files(path), context.text(f"{path}/{file}")
        wanted = {**dict.fromkeys(context.parameters["siblings"], "directory"), file: "file"}
        right = found == wanted and text is not None and text.strip() == context.parameters["line"]
        reason = f"{path} has {sorted(found)}, and the file {text!r}; wanted are {sorted(wanted)}"
        return Grade(float(right), reason, {"found": found, "text": text})

    def oracle(self, context: TaskContext) -> None:
        path, file = context.parameters["path"], context.parameters["file"]
        type_text(
            context.desktop, f"mkdir -p {' '.join(f'{path}/{name}' for name in context.parameters['siblings'])}\n"
        )
        _command(context, f"cat > {path}/{file}", lambda: context.text(f"{path}/{file}") is not None)
        type_text(context.desktop, f"{context.parameters['line']}\n")
        press(context.desktop, "ctrl+d")
        wait_until(lambda: bool(context.text(f"{path}/{file}")), "the written line")


class BusiestAddress(_InTerminal):
    """Answer a question about a log, as a text."""

    name = "terminal-busiest-address"
    level: ClassVar[Level] = 2

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        addresses = private_addresses(random, random.randint(6, 9))
        most = random.randint(40, 60)
        counts = [most, *(random.randint(10, most - 4) for _ in addresses[1:])]
        return {"log": access_log(random, addresses, counts), "busiest": addresses[0]}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        del parameters
        return (
            "Each line of ~/logs/access.log ends with the address of whoever asked. Which address has the most lines? Answer "
            "with that address; you need not leave anything behind on the desktop."
        )

    def setup(self, context: TaskContext) -> None:
        prepare(context)
        context.write("logs/access.log", context.parameters["log"])
        open_terminal(context)

    def evaluate(self, context: TaskContext) -> Grade:
        found = sorted(set(_ADDRESS.findall(context.answer or "")))
        right = found == [context.parameters["busiest"]]
        reason = f"the answer names {', '.join(found) or 'no address'}, wanted is {context.parameters['busiest']}"
        return Grade(float(right), reason, {"answer": found})

    def oracle(self, context: TaskContext) -> str:
        line = "awk '{print $NF}' logs/access.log | sort | uniq -c | sort -rn | head -1"
        # The oracle cannot read the screen as a person does, so the terminal also writes the output to a file.
        _command(context, f"{line} | tee seen.txt", lambda: (context.text("seen.txt") or "").endswith("\n"))
        return f"It is {(context.text('seen.txt') or '').split()[-1]}."


class StopWorker(_InTerminal):
    """End one of several similar processes, found by its status file."""

    name = "terminal-stop-worker"
    level: ClassVar[Level] = 2

    _WORKER = (
        "#!/bin/bash\n# Works on one queue, until it is ended.\n[ -p ~/.gate ] || mkfifo ~/.gate\nread -r _ <>~/.gate\n"
    )

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        queues = random.sample(TOPICS, random.randint(4, 6))
        state = {queue: {"done": random.randint(100, 900), "failed": random.randint(0, 20)} for queue in queues}
        stuck = random.choice(queues)
        state[stuck]["failed"] = random.randint(200, 700)
        return {"state": state, "stuck": stuck}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        del parameters
        return (
            "Several workers run on this machine, one for each queue (`~/bin/worker QUEUE`). For each queue, the file "
            "~/queues/QUEUE.state tells how many jobs were done and how many failed. End the worker of the queue with by far "
            "the most failed jobs, and leave all the others running."
        )

    def setup(self, context: TaskContext) -> None:
        prepare(context)
        context.write("bin/worker", self._WORKER)
        context.run("chmod 755 bin/worker; mkfifo .gate")
        states = context.parameters["state"].items()
        context.write_all({f"queues/{q}.state": f"done {s['done']}\nfailed {s['failed']}\n" for q, s in states})
        rc = context.text(".bashrc") or ""
        started = "".join(f"~/bin/worker {queue} & disown\n" for queue in context.parameters["state"])
        context.write(".bashrc", f"{rc}set +m\n{started}set -m\n")
        open_terminal(context)
        wait_until(lambda: len(self._running(context)) == len(context.parameters["state"]), "the workers")

    def evaluate(self, context: TaskContext) -> Grade:
        running = self._running(context)
        wanted = sorted(queue for queue in context.parameters["state"] if queue != context.parameters["stuck"])
        reason = f"workers of {', '.join(running) or 'no queue'} run, wanted are those of {', '.join(wanted)}"
        return Grade(float(running == wanted), reason, {"running": running})

    def oracle(self, context: TaskContext) -> None:
        stuck = context.parameters["stuck"]
        type_text(context.desktop, "grep failed queues/*.state\n")
        _command(context, f"pkill -f 'bin/worker {stuck}$'", lambda: stuck not in self._running(context))

    def _running(self, context: TaskContext) -> list[str]:
        return sorted(line.split()[-1] for line in context.processes() if re.search(r"bash \S*/bin/worker \S+$", line))


class FixConfig(_InTerminal):
    """Fix a program that fails for two reasons, one after the other, both in its configuration."""

    name = "terminal-fix-config"
    level: ClassVar[Level] = 3
    limits: ClassVar[TaskLimits] = TaskLimits(steps=40, seconds=450)

    _BUILD = """#!/bin/bash
# Builds the report of a project from its configuration: build.sh FILE
set -u
cd "$(dirname "$0")" || exit 1
source_dir=$(sed -n 's/^source *= *//p' "$1"); title=$(sed -n 's/^title *= *//p' "$1"); pages=$(sed -n 's/^pages *= *//p' "$1")
[ -d "$source_dir" ] || { echo "build: source: there is no folder '$source_dir'" >&2; exit 2; }
count=$(find "$source_dir" -name '*.page' | wc -l)
[ "$pages" = "$count" ] || { echo "build: pages: the configuration says $pages, the source has $count" >&2; exit 3; }
[ -n "$title" ] || { echo "build: title: it is empty" >&2; exit 4; }
{ echo "$title"; cat "$source_dir"/*.page; } | sha256sum | cut -c1-32 > report.sum
echo "build: report.sum is written"
"""

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        folder = random.choice(ITEMS)
        pages = [f"{sentence(random)}\n{sentence(random)}\n" for _ in range(random.randint(4, 9))]
        return {
            "project": random.choice(TOPICS),
            "source": f"{folder}-pages",
            "wrong_source": f"{folder}_pages",
            "pages": pages,
            "wrong_pages": len(pages) + random.randint(1, 5),
            "title": f"{people(random, 1)[0]} {random.choice(UNICODE)} {random.randint(1900, 2020)}",
        }

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        project = parameters["project"]
        return (
            f"In ~/{project}, the command `./build.sh project.conf` fails. Find out why, correct project.conf (nothing else; "
            "build.sh, the pages and the title stay as they are) and run the command, so that report.sum is written."
        )

    def setup(self, context: TaskContext) -> None:
        prepare(context)
        parameters = context.parameters
        project = parameters["project"]
        context.write(f"{project}/build.sh", self._BUILD)
        context.run(f"chmod 755 {project}/build.sh")
        context.write_all(
            {f"{project}/{parameters['source']}/{i:02}.page": p for i, p in enumerate(parameters["pages"])}
        )
        context.write(
            f"{project}/project.conf", self._conf(parameters, parameters["wrong_source"], parameters["wrong_pages"])
        )
        open_terminal(context)

    def evaluate(self, context: TaskContext) -> Grade:
        parameters = context.parameters
        project = parameters["project"]
        whole = f"{parameters['title']}\n" + "".join(parameters["pages"])
        wanted = hashlib.sha256(whole.encode()).hexdigest()[:32]
        found = (context.text(f"{project}/report.sum") or "").strip()
        same = context.text(f"{project}/build.sh") == self._BUILD
        pages = [context.text(f"{project}/{parameters['source']}/{i:02}.page") for i in range(len(parameters["pages"]))]
        conf = context.text(f"{project}/project.conf") or ""
        settings = dict(re.findall(r"^(\w+) *= *(.*?) *$", conf, re.MULTILINE))
        fixed = settings.get("pages") == str(len(parameters["pages"])) and settings.get("title") == parameters["title"]
        wrong = [
            text
            for text, bad in (
                (f"report.sum has {found or 'nothing'}, wanted is {wanted}", found != wanted),
                ("build.sh was changed", not same),
                ("the pages were changed", pages != parameters["pages"]),
                (f"project.conf says {settings}", not fixed),
            )
            if bad
        ]
        state = {"sum": found, "settings": settings, "pages": pages == parameters["pages"], "script": same}
        return Grade(
            float(not wrong), "; ".join(wrong) or "report.sum is right, and only project.conf was changed", state
        )

    def oracle(self, context: TaskContext) -> None:
        parameters = context.parameters
        project = parameters["project"]
        type_text(context.desktop, f"cd {project}; cat project.conf; ls; ./build.sh project.conf\n")
        type_text(
            context.desktop,
            f"sed -i 's/^source.*/source = {parameters['source']}/' project.conf; ./build.sh project.conf\n",
        )
        last = f"sed -i 's/^pages.*/pages = {len(parameters['pages'])}/' project.conf; ./build.sh project.conf"
        _command(context, last, lambda: (context.text(f"{project}/report.sum") or "").endswith("\n"))

    def _conf(self, parameters: Mapping[str, Any], source: str, pages: int) -> str:
        return f"# What is built\ntitle = {parameters['title']}\nsource = {source}\npages = {pages}\n"


class LogReport(_InTerminal):
    """Make a table from several logs, and an archive of them."""

    name = "terminal-log-report"
    level: ClassVar[Level] = 3
    limits: ClassVar[TaskLimits] = TaskLimits(steps=40, seconds=450)

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        addresses = private_addresses(random, random.randint(5, 8))
        days = sorted(random.sample(range(10, 29), 3))
        # No two addresses have the same number of lines, so their order is unique.
        totals = random.sample(range(12, 60), len(addresses))
        logs = {}
        for index, day in enumerate(days):
            part = [total // 3 + (index < total % 3) for total in totals]
            logs[f"access-{day}.log"] = access_log(random, addresses, part)
        return {
            "logs": logs,
            "top": 3,
            "file": f"{random.choice(ITEMS)}.csv",
            "archive": f"{random.choice(TOPICS)}.tar.gz",
        }

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        return (
            "Each line of the files ~/logs/access-*.log ends with the address of whoever asked. Write the "
            f"{parameters['top']} addresses with the most lines in all of the files together into ~/{parameters['file']}, one "
            "a line as ADDRESS,COUNT, the one with the most lines first. Then put the log files into the compressed archive "
            f"~/{parameters['archive']}, and delete the folder ~/logs."
        )

    def setup(self, context: TaskContext) -> None:
        prepare(context)
        context.write_all({f"logs/{name}": text for name, text in context.parameters["logs"].items()})
        open_terminal(context)

    def evaluate(self, context: TaskContext) -> Grade:
        counted = Counter(
            line.split()[-1] for text in context.parameters["logs"].values() for line in text.splitlines()
        )
        wanted = [f"{address},{count}" for address, count in counted.most_common(context.parameters["top"])]
        found = [line.strip() for line in (context.text(context.parameters["file"]) or "").splitlines() if line.strip()]
        packed = self._packed(context)
        same = packed == context.parameters["logs"]
        left = sorted(context.files("logs")) or (["logs"] if context.files().get("logs") else [])
        wrong = [
            text
            for text, bad in (
                (f"{context.parameters['file']} has {found}, wanted is {wanted}", found != wanted),
                (f"the archive has {sorted(packed)}, or they are not as they were", not same),
                (f"left in the home directory: {left}", bool(left)),
            )
            if bad
        ]
        state = {"found": found, "packed": sorted(packed), "same": same, "left": left}
        return Grade(float(not wrong), "; ".join(wrong) or "the table and the archive are right", state)

    def oracle(self, context: TaskContext) -> None:
        file, archive = context.parameters["file"], context.parameters["archive"]
        counted = "awk '{n[$NF]++} END {for (a in n) print a \",\" n[a]}' logs/*.log | sort -t, -k2 -rn"
        _command(context, f"{counted} | head -{context.parameters['top']} > {file}", lambda: bool(context.text(file)))
        type_text(context.desktop, f"cat {file}\n")
        _command(context, f"tar czf {archive} logs && rm -r logs", lambda: "logs" not in context.files())

    def _packed(self, context: TaskContext) -> dict[str, str]:
        """The files of the archive, by their names without folders; empty if it is not an archive."""
        data = context.read(context.parameters["archive"])
        found: dict[str, str] = {}
        try:
            # A hostile archive may unpack to any size, headers included.
            unpacked = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16).decompress(data or b"", _LARGEST_ARCHIVE)
            with tarfile.open(fileobj=io.BytesIO(unpacked), mode="r:") as archive:
                for member in itertools.islice(archive, _MOST_MEMBERS):
                    file = archive.extractfile(member) if member.isfile() and member.size <= _LARGEST_MEMBER else None
                    if file is not None:
                        found[member.name.rpartition("/")[2]] = file.read().decode(errors="replace")
        except (tarfile.TarError, EOFError, OSError, zlib.error):
            return {}
        return found
