"""Tasks in Harbor's format run in images of their own, with the engine of this machine."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from containers.helpers import containers, minimal_image, own_name
from deskhand.episodes.ledger.ledger import Key
from deskhand.episodes.outcome import Cause
from deskhand.episodes.play.attempt import attempt
from deskhand.episodes.play.pools import DesktopPools
from deskhand.episodes.tasks.catalogue import find_tasks
from deskhand.episodes.tasks.harbor.consent import NETWORK, VARIABLES
from deskhand.launchers.docker.images import context
from episodes.harbor_folders import DOCKERFILE, SOLVE, TEST, write_task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from deskhand.episodes.play.episode import Agent
    from deskhand.launchers.docker.engine import Engine

# Two rewards, one of them the score.
TWO = """#!/bin/bash
[ "$(cat done.txt)" = HELLO ] && ok=1 || ok=0
echo "{\\"reward\\": $ok, \\"speed\\": 12}" >/logs/verifier/reward.json
"""


@pytest.fixture(autouse=True)
def _own_consent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (NETWORK, VARIABLES):
        monkeypatch.setenv(name, "")


@pytest.fixture
def make(tmp_path: Path, engine: Engine) -> Iterator[Callable[..., Path]]:
    """Writes tasks; the images that were built for them are removed at the end, and then nothing else is left."""
    before = _images(engine)
    folders: list[Path] = []
    # Every layer of theirs has it: others may build images meanwhile, and no two tests have the same one.
    mark = f"deskhand-test={own_name(tmp_path.name)}"

    def write(name: str = "upper", dockerfile: str | None = None, **parts: Any) -> Path:
        text = dockerfile or DOCKERFILE.format(image=minimal_image())
        marked = re.sub(r"^(FROM .*\n)", rf"\1LABEL {mark}\n", text, flags=re.MULTILINE)
        folders.append(write_task(tmp_path / "tasks", name, dockerfile=marked, **parts))
        return folders[-1]

    yield write
    assert engine.api.images(filters={"dangling": True, "label": mark}) == []
    built = {task.image for folder in folders for task in find_tasks([f"harbor:{folder}"])}
    for name in built & (_images(engine) - before):
        engine.api.remove_image(name)
    assert engine.api.images(filters={"label": mark}) == []
    assert containers(engine) == []


def _images(engine: Engine) -> set[str]:
    return {tag for image in engine.api.images() for tag in image["RepoTags"] or ()}


def played(folder: Path, agent: Agent | str, **options: Any) -> Mapping[str, Any]:
    [task] = find_tasks([f"harbor:{folder}"])
    with DesktopPools([task], backend="docker", desktops=1) as pools:
        return attempt(task, Key(task.name, "", 0, 0), pools.places(task), agent, **options)


@pytest.mark.soak
def test_its_solution_scores_1_and_nothing_0_each_time(make: Callable[..., Path]) -> None:
    folder = make(test=TWO)
    for _ in range(2):
        done, nothing = played(folder, "oracle"), played(folder, "nothing")
        assert (done["cause"], done["score"], done["state"]) == (None, 1.0, {"rewards": {"reward": 1.0, "speed": 12.0}})
        assert done["answer"] == "solve.sh: success"
        assert (nothing["cause"], nothing["score"]) == (None, 0.0)
        assert nothing["reason"] == "its tests give 0: cat: done.txt: No such file or directory"


@pytest.mark.soak
def test_an_image_without_a_desktop_gets_one(make: Callable[..., Path], engine: Engine) -> None:
    # One of Debian with the packages of a desktop, so that they need not be installed each time.
    minimal_image()
    packages = "deskhand-test/packages"
    for message in engine.api.build(path=str(context()), target="packages", tag=packages, rm=True, decode=True):
        assert "error" not in message, message
    # Another user has the number of the desktop's, and there are files where a container's own mounts are.
    text = f"""FROM {packages} AS other
RUN echo one >/one
FROM {packages}
USER 0:0
LABEL org.deskhand.displays=no
RUN rm /var/lib/extrausers/passwd && userdel user && useradd --uid 1000 agent && echo kept >/home/user/kept.txt
COPY --from=other /one /srv/one
WORKDIR /srv/work
COPY start.txt .
USER agent
ENTRYPOINT ["false"]
CMD ["x"]
"""
    kept = 'test "$(cat kept.txt)" = kept || echo 0 >/logs/verifier/reward.txt\n'
    folder = make(dockerfile=text, solve=f"{SOLVE}cp ~/kept.txt kept.txt && rm start.txt\n", test=TEST + kept)
    result = played(folder, "oracle")
    assert (result["cause"], result["score"]) == (None, 1.0), result["detail"]


@pytest.mark.soak
def test_an_agent_and_its_tests_have_what_the_task_gives(
    make: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    toml = """
    [verifier]
    env = { JUDGE = "${JUDGE_KEY}" }
    [environment]
    env = { GREETING = "hello" }
    """
    test = """#!/bin/bash
    echo "$GREETING $JUDGE $(id -u) $PWD $(cat done.txt)"
    [ "$JUDGE" = secret ] && echo 0.5 >/logs/verifier/reward.txt
    """
    monkeypatch.setenv(VARIABLES, "JUDGE_KEY")
    monkeypatch.setenv("JUDGE_KEY", "secret")
    seen: list[str] = []

    def agent(episode: Any) -> None:
        run = episode.desktop.machine.run
        seen.append(run("echo $GREETING ${JUDGE:-none} $PWD; ls /tests /solution; touch /etc/x /app/x").stdout)
        # What it leaves where the tests and the reward will be does not count.
        run("mkdir -p /logs/verifier/reward.txt/deep; echo exit 1 >/tests/test.sh; chmod 0 /logs/verifier/reward.txt")
        run("echo by-agent >done.txt")

    result = played(make(toml=toml, test=test), agent)
    assert seen == ["hello none /app\n/solution:\n\n/tests:\n"]
    assert (result["cause"], result["score"]) == (None, 0.5), result["detail"]
    assert result["reason"] == "its tests give 0.5: hello secret 1000 /app by-agent"


@pytest.mark.soak
@pytest.mark.parametrize(
    ("toml", "test", "said"),
    [
        (
            "",
            "#!/bin/bash\necho nothing to say\n",
            "its tests write neither reward.json nor reward.txt: nothing to say",
        ),
        ("", "#!/bin/bash\necho 7 >/logs/verifier/reward.txt\n", "the reward is 7: a score is 0 to 1"),
        ("", "#!/bin/bash\nyes | head -c 9999999 >/logs/verifier/reward.txt\n", "is larger than 65536 bytes"),
        ("[verifier]\ntimeout_sec = 1\n", "#!/bin/bash\nsleep 600\n", "its tests take more than 1 s"),
    ],
)
def test_tests_without_a_score_are_no_score(make: Callable[..., Path], toml: str, test: str, said: str) -> None:
    result = played(make(toml=toml, test=test), "nothing")
    assert (result["cause"], result["valid"], result["score"]) == (Cause.EVALUATOR_FAILED, False, None)
    assert said in result["detail"]


@pytest.mark.soak
@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("RUN echo the end && exit 3\n", "returned a non-zero code: 3"),
        ("BOGUS\n", "unknown instruction: BOGUS"),
        ("COPY absent .\n", "absent"),
        ("WORKDIR /\n", "its working directory is '/'"),
    ],
)
def test_an_image_that_cannot_be_built_leaves_nothing(make: Callable[..., Path], more: str, said: str) -> None:
    result = played(make(dockerfile=f"{DOCKERFILE.format(image=minimal_image())}{more}"), "oracle")
    assert (result["cause"], result["valid"]) == (Cause.CANNOT_RUN, False)
    assert said in result["detail"]


@pytest.mark.soak
def test_a_run_goes_on_after_an_interruption_and_past_an_image_that_fails(
    make: Callable[..., Path], driver_environment: dict[str, str], tmp_path: Path
) -> None:
    make("a-good")
    make("b-bad", dockerfile=f"{DOCKERFILE.format(image=minimal_image())}RUN exit 3\n")
    make("c-slow", solve=f"{SOLVE}[ -e /logs/again ] || echo waits; sleep 1\n")
    out, words = tmp_path / "run", [sys.executable, "-m", "deskhand", "run", f"harbor:{tmp_path / 'tasks'}"]
    words += ["--out", str(out), "--json"]
    with subprocess.Popen(words, env=driver_environment, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            news = json.loads(line)
            if news["kind"] == "begun" and news["key"]["task"] == "harbor-c-slow":
                running.send_signal(signal.SIGINT)
        assert running.wait(120) == 130
    again = subprocess.run(words, env=driver_environment, stdout=subprocess.PIPE, text=True, timeout=600, check=True)
    news = [json.loads(line) for line in again.stdout.splitlines()]
    assert (news[0]["kind"], news[0]["done"]) == ("run", 2)
    assert [each["key"]["task"] for each in news if each["kind"] == "done"] == ["harbor-c-slow"]
    results = [json.loads(path.read_text()) for path in out.glob("ep/*/attempt-*/result.json")]
    assert {each["task"]: (each["cause"], each["score"]) for each in results} == {
        "harbor-a-good": (None, 1.0),
        "harbor-b-bad": ("cannot_run", None),
        "harbor-c-slow": (None, 1.0),
    }
