"""The benchmark: deskhand beside its peers, in one run. `python -m bench` is the command, `make bench` the whole of it.

`sections` names the measurements and their order. `looks`, `acts`, `texts` and `resources` measure, on scenes that `scenes`
makes and `stage` shows; `peers` and `worker` run the other tools. They yield rows (`figures`), from which `tables` and `plot`
make what people read. Three are separate commands: `elements`, about the accessibility tree, `element_tokens`, about what it
costs a model, and `ocr`, about OCR libraries. `figures` and `tables` are pure. Every reported number was measured in the same
run.
"""
