"""A task that the code before the rebuild and the code of today both load: it needs no name of the package."""

SHELL = ["xterm", "-fn", "5x7", "-geometry", "19x9+0+0", "+sb", "-e", "sh", "-c", "PS1='$ ' exec sh"]


def setup(stage):
    stage.write("ready.txt", "ready")
    stage.desktop.start(SHELL)


def evaluate(stage):
    return (stage.text("greeting.txt") or "").strip() == stage.parameters["word"]


def oracle(stage):
    raise NotImplementedError
