"""The benchmark: deskhand beside its peers, in one run. `python -m bench` is the command, `make bench` the whole of it.

What flows where: `sections` names what is measured and in which order; `looks`, `acts`, `texts` and `resources` measure it, on
scenes that `scenes` makes and `stage` shows; `peers` and `worker` are the others. They yield rows (`figures`), from which
`tables` and `plot` make what people read. `elements` is a command of its own, about the accessibility tree. `figures` and
`tables` are pure. What must never appear here: a number that was not measured in the run it is reported with.
"""
