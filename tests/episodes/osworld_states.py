"""End states for OSWorld's metrics: for each a task, as it would be done right and wrong, described for `osworld_files`.

Each case has the metric, the options and the rule of the task that it names; the files are ours. Where a getter needs an
application (the browser's tabs, an accessibility tree, VLC), the case gives what it would have got: as a value or as a file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

HOME = "/home/user"


@dataclass(frozen=True, slots=True)
class State:
    """What is there at the end: files by their paths, the value that a getter would give, and whether the agent gave up."""

    files: dict[str, Any] = field(default_factory=dict)
    value: Any = None
    gave_up: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """A metric, and how it judges two states.

    Attributes:
        task: Whose metric, options and rule these are: the domain, and how the task's id begins.
        area: The application whose files these are.
        func: The metric.
        evaluator: The rest of the task's evaluator.
        right: The state that scores 1.
        wrong: The state that scores 0, or at most `most`.
        gold: The files that the metric compares with, by their names.
        most: Metrics of likeness give something for anything.
        overlooked: A wrong state that upstream's metric gives 1 too.
    """

    task: str
    area: str
    func: str
    evaluator: dict[str, Any]
    right: State
    wrong: State
    gold: dict[str, Any] = field(default_factory=dict)
    most: float = 0.0
    overlooked: State | None = None

    @property
    def name(self) -> str:
        return f"{self.func}-{self.task.replace('/', '-')}"


def hub(name: str) -> str:
    """The address of a file that a metric compares with."""
    return f"https://huggingface.co/files/{name}"


def _rule(rules: Any) -> dict[str, Any]:
    return {"type": "rule", "rules": rules}


def compared(  # noqa: PLR0917 # a row of a table
    task: str,
    area: str,
    func: str,
    end: str,
    gold: Any,
    wrong: Any,
    options: Any = None,
    right: Any = None,
    most: float = 0.0,
) -> Case:
    """A file with the ending `end` is compared with another one, which the right file is like if nothing is said of it."""
    path = f"{HOME}/Desktop/end.{end}"
    evaluator = {
        "result": {"type": "vm_file", "path": path, "dest": f"end.{end}"},
        "expected": {"type": "cloud_file", "path": hub(f"gold.{end}"), "dest": f"gold.{end}"},
        "options": options or {},
    }
    states = (State({path: each}) for each in (gold if right is None else right, wrong))
    return Case(task, area, func, evaluator, *states, gold={f"gold.{end}": gold}, most=most)


def ruled(task: str, area: str, func: str, path: str, rules: Any, right: Any, wrong: Any, **options: Any) -> Case:  # noqa: PLR0917
    """A file is judged by a rule."""
    place = f"{HOME}/{path}"
    evaluator = {
        "result": {"type": "vm_file", "path": place, "dest": f"end-{path.rpartition('/')[2]}"},
        "expected": _rule(rules),
        "options": options,
    }
    return Case(task, area, func, evaluator, State({place: right}), State({place: wrong}))


def valued(task: str, area: str, func: str, rules: Any, right: Any, wrong: Any) -> Case:  # noqa: PLR0917
    """What a getter would give is judged by a rule."""
    evaluator = {"expected": _rule(rules), "options": {}}
    return Case(task, area, func, evaluator, State(value=right), State(value=wrong))


def got(task: str, area: str, func: str, result: Any, rules: Any, path: str, right: Any, wrong: Any) -> Case:  # noqa: PLR0917
    """What upstream's getter makes of a file, or of what a command says, is judged by a rule."""
    evaluator = {"result": result, "expected": _rule(rules), "options": {}}
    return Case(task, area, func, evaluator, *(State({f"{HOME}/{path}": each}) for each in (right, wrong)))


def says(name: str) -> dict[str, Any]:
    return {"type": "vm_command_line", "command": ["cat", f"{HOME}/{name}"]}


# --- Calc ---

ROWS = [["Name", "Sum"], ["a", 1.5], ["b", 2.5]]
OTHER = [["Name", "Sum"], ["a", 1.5], ["b", 3.5]]
DATA = {"type": "sheet_data", "sheet_idx0": 0, "sheet_idx1": "EI0"}
SECOND = {"type": "sheet_data", "sheet_idx0": "RNSheet2", "sheet_idx1": "ENSheet2"}


def _with(**parts: Any) -> dict[str, Any]:
    return {"Sheet1": {"rows": ROWS, **parts}}


def _both(kind: str, **parts: Any) -> dict[str, Any]:
    return {"type": kind, "sheet_idx0": 0, "sheet_idx1": "EI0", **parts}


def _table(task: str, rules: list[Any], right: Any, wrong: Any, area: str = "Calc") -> Case:
    return compared(task, area, "compare_table", "xlsx", right, wrong, {"rules": rules})


def _pivots(rows_by: int) -> dict[str, Any]:
    return {"Sheet1": ROWS, "Sheet2": {"rows": [], "pivot": rows_by}}


def _printed(task: str, rule: dict[str, Any], right: str, wrong: str) -> Case:
    """A table beside which its sheet lies as it is shown."""
    names = ("end.xlsx", "end-Sheet1.csv"), ("gold.xlsx", "gold-Sheet1.csv")
    files, golds = ([f"{HOME}/{each}" for each in names[0]], [hub(each) for each in names[1]])
    evaluator = {
        "result": {"type": "vm_file", "path": files, "dest": list(names[0]), "multi": True},
        "expected": {"type": "cloud_file", "path": golds, "dest": list(names[1]), "multi": True},
        "options": {"rules": [rule]},
    }
    states = (State(dict(zip(files, (ROWS, shown), strict=True))) for shown in (right, wrong))
    gold = dict(zip(names[1], (ROWS, "Name,Sum\na,1.50\n"), strict=True))
    return Case(task, "Calc", "compare_table", evaluator, *states, gold=gold)


_MERGED = [
    ("A1", "value", "Investment Summary"), ("B1", "merge", True), ("C1", "merge", True), ("D1", "merge", False),
    ("A2", "value", "High Interest Rate"), ("B2", "merge", True), ("C2", "value", "Low Interest Rate"), ("D2", "merge", True),
    ("E2", "merge", False),
]  # fmt: skip
_HEADS = [["Investment Summary"], ["High Interest Rate", None, "Low Interest Rate"]]
_CELLS = [
    {"type": "check_cell", "sheet_idx": "RNSheet2", "coordinate": at, "props": {what: {"method": "eq", "ref": ref}}}
    for at, what, ref in _MERGED
]
_FUZZY = [
    {"range": ["A1:C1"], "type": "includes", "ignore_case": True},
    {"range": ["A2:B5"], "type": "exact_match", "trim_leadings": " ", "trim_trailings": " "},
    {"range": ["C2:C5"], "type": "exact_match", "trim_leadings": " ", "trim_trailings": " ", "ignore_case": True},
]
_PEOPLE = [["Name", "Mail", "Place"], *([f"n{row}", f"m{row}", f"p{row}"] for row in range(4))]
_LOUD = [["name (all)", "mail", "place"], *([f"n{row}", f"m{row}", f"P{row}"] for row in range(4))]
_VALID = {
    "ranges": {"method": "spreadsheet_range", "ref": ["D2:D29", "D1:D1048576"]},
    "type": {"method": "eq", "ref": "list"},
    "formula1": {"method": "str_set_eq", "ref": ["Pass", "Fail", "Held"]},
}
_PIVOT = {
    "type": "pivot_table", "sheet_idx0": "RNSheet2", "sheet_idx1": "ENSheet2",
    "pivot_props": ["col_fields", "filter", "row_fields", "data_fields"],
}  # fmt: skip

CALC = [
    _table("libreoffice_calc/01b269ae", [DATA], ROWS, OTHER),
    _table("libreoffice_calc/04d9aeaf", [SECOND], {"Sheet1": OTHER, "Sheet2": ROWS}, {"Sheet1": OTHER, "Sheet2": OTHER}),
    _table("libreoffice_calc/0326d92d", [DATA, _both("chart", chart_props=["type", "title"])],
           _with(chart=["LineChart", "Sums", None]), _with(chart=["LineChart", "Names", None])),
    _table("libreoffice_calc/0a2e43bf", [DATA, _both("chart", chart_props=["type"])],
           _with(chart=["LineChart", "Sums", None]), _with(chart=["BarChart", "Sums", None])),
    _table("libreoffice_calc/347ef137", [_both("chart", chart_props=["type", "direction"]), DATA],
           _with(chart=["BarChart", "Sums", "col"]), _with(chart=["BarChart", "Sums", "bar"])),
    _table("libreoffice_calc/0cecd4f3",
           [{"type": "sheet_name"}, {**DATA, "sheet_idx1": 1},
            *({**DATA, "sheet_idx0": n, "sheet_idx1": f"EI{n}"} for n in (1, 2))],
           {"One": ROWS, "Two": ROWS, "Three": OTHER}, {"One": ROWS, "Three": ROWS, "Two": OTHER}),
    _table("libreoffice_calc/1334ca3e", [{"type": "zoom", "sheet_idx": 0, "method": "lt", "ref": 260}, DATA],
           _with(zoom=80), _with(zoom=300)),
    _table("libreoffice_calc/1954cced", [_PIVOT], _pivots(0), _pivots(1)),
    _table("libreoffice_calc/1d17d234", _CELLS,
           {"Sheet1": ROWS, "Sheet2": {"rows": _HEADS, "merged": ["A1:C1", "A2:B2", "C2:D2"]}},
           {"Sheet1": ROWS, "Sheet2": {"rows": _HEADS, "merged": ["A1:D1", "A2:B2", "C2:D2"]}}),
    _table("libreoffice_calc/21ab7b40", [DATA, _both("style", props=["font_color"])],
           _with(colors={"B2": "FFFF0000"}), _with(colors={"B2": "FF0000FF"})),
    _table("libreoffice_calc/8b1ce5f2", [DATA, _both("style", props=["bgcolor"])],
           _with(fills={"B2": "FFFF0000"}), _with(fills={"B3": "FFFF0000"})),
    _table("libreoffice_calc/4188d3a4", [_both("freeze"), DATA], _with(freeze="B2"), _with(freeze="A2")),
    _table("libreoffice_calc/6054afcb", [DATA, _both("row_props", props=["hidden"])], _with(hidden=[3]), _with(hidden=[2])),
    _table("libreoffice_calc/ecb0df7a", [DATA, {"type": "data_validation", "sheet_idx": 0, "dv_props": [_VALID]}],
           _with(choice=["D2:D29", "Held,Pass,Fail"]), _with(choice=["D2:D29", "Pass,Fail"])),
    _printed("libreoffice_calc/0bf05a7d", _both("sheet_print"), "Name,Sum\na,1.50\n", "Name,Sum\na,1.5\n"),
    _printed("libreoffice_calc/21df9241",
             {"type": "sheet_print", "sheet_idx0": "RNSheet1", "sheet_idx1": "ENSheet1", "ignore_case": True},
             "NAME,sum\nA,1.50\n\n", "Name,Sum\na,15.0\n"),
    compared("multi_apps/b5062e3e", "Calc", "compare_table", "xlsx", _PEOPLE, [*_LOUD[:4], ["n3", "m3", "p4"]],
          {"rules": [{"type": "sheet_fuzzy", "sheet_idx0": "RNSheet1", "sheet_idx1": "ENSheet1", "rules": _FUZZY}]},
          right=_LOUD),
    compared("libreoffice_calc/3aaa4e37", "Calc", "compare_csv", "csv", "a,1\nb,2\n", "a,1\nb,3\n"),
]  # fmt: skip
_SUM = {
    "type": "check_cell",
    "sheet_idx": 0,
    "coordinate": "E3",
    "props": {"value": {"method": "approx:0.001", "ref": 191.6667}},
}
CALC.append(
    Case("libreoffice_calc/357ef137", "Calc", "compare_table",
         {"result": {"type": "vm_file", "path": f"{HOME}/end.xlsx", "dest": "end.xlsx"}, "options": {"rules": [_SUM]}},
         *(State({f"{HOME}/end.xlsx": [[], [], [1, 2, 3, 4, value]]}) for value in (191.6668, 191.7)))
)  # fmt: skip

# --- Writer ---


def _docx(task: str, gold: Any, wrong: Any, right: Any = None, **options: Any) -> Case:
    return compared(task, "Writer", "compare_docx_files", "docx", gold, wrong, options, right)


_TEXT = ["The first line", "and another one"]
_RUN_ON = ["The first", "line and", "", "another one"]

WRITER = [
    _docx("libreoffice_writer/0b17a146", _TEXT, ["The first line", "and one"], _RUN_ON),
    _docx("libreoffice_writer/88fe4b2d", _TEXT, _RUN_ON, ignore_blanks=False),
    _docx("multi_apps/1f18aa87", _TEXT, ["The last line", "and another one"], ["THE FIRST LINE", "", "and another one"],
          ignore_case=True, ignore_blanks=True),
    _docx("multi_apps/236833a3", _TEXT, _RUN_ON, _TEXT[::-1], ignore_blanks=True, ignore_case=True, ignore_order=True),
    _docx("multi_apps/0c825995", ["abab"], ["xyz"], content_only=True),
    _docx("multi_apps/aad10cd7", ["abab"], ["xyz"], fuzzy_match=True),
    _docx("multi_apps/bb83cab4", ["ab", "cd"], ["xyz"], ["cd", "", "ab"], ignore_blanks=True, ignore_order=True,
          content_only=True, delete_empty_lines=True),
    compared("libreoffice_writer/0810415c", "Writer", "compare_line_spacing", "docx",
          [{"text": "one", "spacing": 2.0}, "two"], ["one", {"text": "two", "spacing": 2.0}]),
    compared("libreoffice_writer/936321ce", "Writer", "compare_docx_tables", "docx",
          [{"table": [["a", "b"], ["c", "d"]]}], [{"table": [["a", "c"], ["b", "d"]]}]),
    compared("libreoffice_writer/6ada715d", "Writer", "compare_docx_images", "docx", [{"image": {"waves": 16}}],
          [{"image": {"waves": 10}}], right=["A text", {"image": {"waves": 16}}]),
]  # fmt: skip

# --- Impress ---


def _pptx(task: str, gold: Any, wrong: Any, right: Any = None, **options: Any) -> Case:
    return compared(task, "Impress", "compare_pptx_files", "pptx", gold, wrong, options, right)


_BOX = {"text": "A title", "at": [1, 1, 3, 1]}


def _second(shape: dict[str, Any], *places: list[float]) -> list[Any]:
    """Slides whose last one has a shape at different places."""
    return [[[_BOX], [_BOX, {**shape, "at": place}]] for place in places]


_LOW, _HIGH = [1, 4, 3, 1], [1, 2, 3, 1]
_COMPARED = [[[_BOX, {"text": "Product Comparison", "at": place}]] for place in (_HIGH, _LOW)]
_RIGHT = _second({"picture": {}}, [1, 1, 2, 1], [5, 1, 2, 1], [3, 1, 2, 1])
_TOP = _second({"picture": {}}, [1, 3, 2, 1], [1, 1, 2, 1], [1, 2.5, 2, 1])
_SIZES = _second({"picture": {}}, [1, 3, 2, 1], [2, 2, 2, 1], [1, 3, 3, 1])
_HEIGHTS = _second({"picture": {}}, [1, 3, 2, 1], [1, 3, 3, 1], [1, 3, 2, 2])
_TABLES = [[[_BOX], *each] for each in _second({"table": [["a", "b"]]}, _HIGH, _LOW)]
_BLUE, _RED, _BIG = (
    {**_BOX, **more} for more in ({"color": "0000FF"}, {"color": "FF0000"}, {"size": 40, "color": "0000FF"})
)

IMPRESS = [
    _pptx("libreoffice_impress/05dd4c1d", [[{**_BOX, "underline": True}]], [[{**_BOX, "underline": False}]]),
    _pptx("libreoffice_impress/04578141", [[_BLUE]], [[_RED]], [[{**_BLUE, "at": _LOW}]], examine_run_count=False,
          examine_shape=False, examine_background_color=False, examine_shape_lenient_height=True),
    _pptx("libreoffice_impress/b8adbc24", [[_BLUE]], [[_RED]], [[_BIG]], examine_alignment=False, examine_font_name=False,
          examine_shape=False, examine_font_size=False, examine_run_count=False),
    _pptx("libreoffice_impress/a097acff", [[_BOX]], [[_BOX], [_BOX]], [[{**_BOX, "at": _LOW}]], examine_shape=False),
    _pptx("libreoffice_impress/15aece23", _COMPARED[0], _COMPARED[0], _COMPARED[1], examine_shape=False,
          examine_title_bottom_position=True),
    _pptx("libreoffice_impress/ac1b39ff", _TABLES[0], _TABLES[0], _TABLES[1], examine_shape=False,
          examine_table_bottom_position=True),
    _pptx("libreoffice_impress/2b94c692", _RIGHT[0], _RIGHT[2], _RIGHT[1], examine_shape=False, examine_right_position=True),
    _pptx("libreoffice_impress/ed43c15f", _TOP[0], _TOP[2], _TOP[1], examine_shape=False, examine_top_position=True),
    _pptx("libreoffice_impress/c82632a4", _SIZES[0], _SIZES[2], _SIZES[1], examine_shape=False, examine_image_size=True,
          approximately_tolerance=0.01),
    _pptx("libreoffice_impress/7ae48c60", _HEIGHTS[0], _HEIGHTS[2], _HEIGHTS[1], examine_shape=False,
          examine_modify_height=True),
    _pptx("multi_apps/eb303e01", [[_BOX]], [[{**_BOX, "text": "A tale"}]], examine_shape=False, examine_bullets=False),
    compared("libreoffice_impress/455d3c66", "Impress", "compare_images", "png", {"waves": 16}, {"waves": 7}, most=0.5),
    compared("multi_apps/778efd0a", "Impress", "compare_audios", "wav", [440, 880], []),
]  # fmt: skip

# --- GIMP, VLC ---

_GIMP = ".config/GIMP/2.10"
_STATUS = "<root><state>{}</state><information><category name='meta'><info name='{}'>{}</info></category></information></root>"
_SONG = "Rick Astley - Never Gonna Give You Up (Official Music Video).mp4"
_STREAM = "https://devstreaming-cdn.apple.com/videos/streaming/examples/img_bipbop_adv_example_fmp4/master.m3u8"


def _setting(task: str, key: str, value: str) -> Case:
    result = {"type": "gimp_config_file", "file_name": "gimprc", "dest": "gimprc"}
    texts = (f"# GIMP\n\n({key} {each})\n" for each in (value, '"Dark"'))
    return got(task, "GIMP", "check_config_status", result, {"type:": "key-value", "key": key, "value": value},
                f"{_GIMP}/gimprc", *texts)  # fmt: skip


_DARKER = compared("multi_apps/4c26e3f3", "GIMP", "check_brightness_decrease_and_structure_sim", "png", {"bright": 0.3},
                {"bright": 0.2}, {"threshold": 0.15}, {"bright": 0.6})  # fmt: skip
# There the file of the desktop is the one that has to be brighter.
_DARKER.evaluator.update(result=_DARKER.evaluator["expected"], expected=_DARKER.evaluator["result"])

PICTURES = [
    compared("gimp/2a729ded", "GIMP", "check_structure_sim", "png", {"waves": 16}, {"waves": 7}),
    compared("multi_apps/91190194", "GIMP", "check_structure_sim", "png", {"size": [40, 40]}, {"size": [40, 41]}),
    compared("gimp/7a4deb26", "GIMP", "check_brightness_decrease_and_structure_sim", "png", {"bright": 0.6},
             {"bright": 0.9}, None,
          {"bright": 0.4}),
    _DARKER,
    ruled("gimp/d16c99dc", "GIMP", "check_image_size", "Desktop/resized.png", {"height": 512, "ignore_transparent": True},
          {"size": [20, 512], "margin": 8}, {"size": [20, 500], "margin": 6}),
    ruled("multi_apps/42f4d1c7", "GIMP", "check_image_size", "Desktop/resized.png", {"height": 128, "width": 128},
          {"size": [128, 128]}, {"size": [128, 96]}),
    _setting("gimp/7767eef2", "theme", '"Light"'),
    _setting("gimp/b148e375", "layer-new-name", '"Square"'),
    got("gimp/a746add2", "GIMP", "check_include_exclude", says(f"{_GIMP}/action-history"),
         {"include": ["filters-vignette"], "exclude": ["error", "failed", "not found"]}, f"{_GIMP}/action-history",
         '(history-item "filters-vignette" 1)\n', '(history-item "filters-blur" 1)\n'),
    ruled("vlc/59f21cfb", "VLC", "is_vlc_playing", "status.xml", {"type": "file_name", "file_name": _SONG},
          _STATUS.format("playing", "filename", _SONG), _STATUS.format("paused", "filename", _SONG)),
    ruled("vlc/bba3381f", "VLC", "is_vlc_playing", "status.xml", {"type": "url", "url": _STREAM},
          _STATUS.format("playing", "url", _STREAM), _STATUS.format("playing", "url", "https://example.org/a.m3u8")),
    compared("vlc/efcf0d81", "VLC", "compare_images", "png", {"waves": 16}, {"waves": 7}, {"reference_base_result": 0.11}),
    compared("vlc/8f080098", "VLC", "compare_audios", "wav", [440, 880], [300, 5000], most=0.8),
]  # fmt: skip
