"""More end states for OSWorld's metrics, see `osworld_states`: Thunderbird, PDF, the browser, VS Code, the desktop itself."""

from __future__ import annotations

from typing import Any

from episodes.osworld_states import (
    CALC,
    HOME,
    IMPRESS,
    PICTURES,
    WRITER,
    Case,
    State,
    compared,
    got,
    hub,
    ruled,
    says,
    valued,
)

# --- Thunderbird ---

_PROFILE = ".thunderbird/t5q2a5hp.default-release"
_FILTERS = f"{_PROFILE}/ImapMail/outlook.office365.com/msgFilterRules.dat"
_TABBAR = 'application[name=Thunderbird] page-tab-list[attr|id="tabmail-tabs"]'
_XML = (
    '<desktop-frame xmlns:attr="https://accessibility.ubuntu.example.org/ns/attributes"><application name="{}">'
    '<page-tab-list attr:id="tabmail-tabs"><page-tab name="{}"/><label>{}</label></page-tab-list></application></desktop-frame>'
)
_INSIDE = "//application[@name='Thunderbird']//*"
_ACCOUNT = "anonym-x2024@outlook.com"


def _prefs(task: str, rules: Any, right: str, wrong: str) -> Case:
    return ruled(task, "Thunderbird", "check_thunderbird_prefs", f"{_PROFILE}/prefs.js", rules, right, wrong)


def _filter(task: str, expected: dict[str, Any]) -> Case:
    action, value = expected["action"], expected["actionValue"]
    [condition] = expected["condition"]
    lines = (
        'version="9"\nname="one"\nenabled="{}"\ntype="17"\n'
        f'action="{action}"\nactionValue="{value}"\ncondition="{condition}"\n'
    )
    return ruled(task, "Thunderbird", "check_thunderbird_filter", _FILTERS, {"expect": [expected]}, lines.format("yes"),
                 lines.format("no"))  # fmt: skip


def _folders() -> Case:
    """Whose content upstream's metric does not look at: it leaves out every message that is not empty."""
    paths = [f"{HOME}/{_PROFILE}/Mail/Local Folders/{name}" for name in ("have_seen", "Bills")]
    evaluator = {
        "result": {"type": "vm_file", "multi": True, "path": paths, "dest": ["have_seen", "Bills"], "gives": [0, 1]},
        "expected": {
            "type": "cloud_file", "multi": True, "path": [hub("seen_gold"), hub("bills_gold")],
            "dest": ["seen_gold", "bills_gold"], "gives": [0, 1],
        },
        "options": {"remove_deleted": True, "remove_duplicate": True},
    }  # fmt: skip
    mails = [f"FROM - Mon\nX-Mozilla-Status: 0001\nSubject: {name}\n\ntext\n" for name in ("a", "b", "c")]
    right, other = (dict(zip(paths, each, strict=True)) for each in (mails[:2], mails[1:]))
    wrong = {paths[0]: mails[0]}
    gold = dict(zip(("seen_gold", "bills_gold"), mails, strict=False))
    return Case("multi_apps/78aed49a", "Thunderbird", "check_thunderbird_folder", evaluator, State(right), State(wrong), gold,
                overlooked=State(other))  # fmt: skip


def _listing(  # noqa: PLR0917 # a row of a table
    task: str, name: str, rules: Any, right: str, wrong: str, area: str = "Thunderbird"
) -> Case:
    """What a command of the post-configuration says is judged."""
    path = f"{HOME}/listed"
    step = {"type": "command", "parameters": {"command": ["cat", path], "stdout": name}}
    evaluator = {
        "postconfig": [step],
        "result": {"type": "cache_file", "path": name},
        "expected": {"type": "rule", "rules": rules},
        "options": {},
    }
    return Case(task, area, "check_list", evaluator, State({path: right}), State({path: wrong}))


MAIL = [
    _prefs("thunderbird/08c73485",
           {"expect": {"mail.server.default.applyIncomingFilters": {"method": "eq", "ref": True},
                       "mail.imap.use_status_for_biff": {"method": "eq", "ref": False}},
            "unexpect": {"mail.server.default.autosync_offline_stores": {"method": "eq", "ref": False}}},
           'user_pref("mail.server.default.applyIncomingFilters", true);\nuser_pref("mail.imap.use_status_for_biff", false);\n',
           'user_pref("mail.server.default.applyIncomingFilters", true);\nuser_pref("mail.imap.use_status_for_biff", false);\n'
           'user_pref("mail.server.default.autosync_offline_stores", false);\n'),
    _prefs("thunderbird/10a730d5", {"expect": {"extensions.activeThemeID": {"method": "re", "ref": "dark"}}},
           'user_pref("extensions.activeThemeID", "thunderbird-compact-dark@mozilla.org");\n',
           'user_pref("extensions.activeThemeID", "thunderbird-compact-light@mozilla.org");\n'),
    _prefs("thunderbird/3f28fe4f", {"expect": {"mail.identity.id1.htmlSigText": {"method": "re.S", "ref": "Anonym\\nXYZ Lab"}}},
           'user_pref("mail.identity.id1.htmlSigText", "Anonym\\nXYZ Lab");\n',
           'user_pref("mail.identity.id1.htmlSigText", "Anonym XYZ Lab");\n'),
    ruled("thunderbird/3f49d2cc", "Thunderbird", "check_json", f"{_PROFILE}/xulstore.json",
          {"expect": [{"key": ["chrome://messenger/content/messenger.xhtml", "folderTree", "mode"], "method": "re",
                       "ref": "\\bsmart\\b"}]},
          *({"chrome://messenger/content/messenger.xhtml": {"folderTree": {"mode": mode}}} for mode in ("all,smart", "all"))),
    _filter("thunderbird/5203d847",
            {"enabled": "yes", "action": "Move to folder", "actionValue": "mailbox://nobody@Local%20Folders/Promotions",
             "condition": ["AND (subject,contains,discount)"]}),
    _filter("thunderbird/9b7bc335",
            {"enabled": "yes", "action": "Forward", "actionValue": "anonym-x2024@gmail.com", "condition": ["ALL"]}),
    _folders(),
    valued("thunderbird/15c3b339", "Thunderbird", "check_accessibility_tree",
           [{"xpath": f"{_INSIDE}[contains(text(), '{_ACCOUNT}') or contains(@name, '{_ACCOUNT}')]"},
            {"xpath": f"{_INSIDE}[contains(@name, 'password') or contains(@name, 'Password')]"}],
           _XML.format("Thunderbird", "Enter your password", _ACCOUNT), _XML.format("Thunderbird", "Enter your name",
           _ACCOUNT)),
    valued("thunderbird/7b1e1ff9", "Thunderbird", "check_accessibility_tree",
           [{"selectors": [f'{_TABBAR}>page-tab[name="About Profiles"]']}],
           _XML.format("Thunderbird", "About Profiles", ""), _XML.format("Firefox", "About Profiles", "")),
    _listing("thunderbird/a10b69e1", "thunder-local-folder.ls",
             {"expect": ["\\bCOMPANY\\.msf\\b", "\\bCOMPANY/?(?!\\.msf)", "\\bUNIVERSITY\\.msf\\b",
             "\\bUNIVERSITY/?(?!\\.msf)"]},
             "COMPANY\nCOMPANY.msf\nUNIVERSITY\nUNIVERSITY.msf\n", "COMPANY\nCOMPANY.msf\nUNIVERSITY.msf\n"),
    _listing("multi_apps/f8369178", "gsettings.out", {"expect": ["Orchis"]}, "'Orchis'\n", "'Yaru'\n", "Terminal"),
    _listing("multi_apps/415ef462", "diff.out", {"unexpect": [".+"]}, "", "1c1\n", "Terminal"),
]  # fmt: skip

# --- PDF, archives ---

_BOOKS = {name: {"a.pdf": ["abab"], "b.pdf": [text]} for name, text in (("right", "cdcd"), ("wrong", "xyz"))}


def _below(folder: str, files: dict[str, Any]) -> dict[str, Any]:
    return {f"{folder}/{name}": content for name, content in files.items()}


FILES = [
    compared("libreoffice_calc/aa3a8974", "PDF", "compare_pdfs", "pdf", ["abab", "cd"], ["xyz"]),
    compared("multi_apps/337d318b", "PDF", "compare_pdfs", "pdf", ["An invoice", "of 42"], ["xyz"], None,
             ["An invoice\nof 42"]),
    compared("multi_apps/5df7b33a", "PDF", "compare_archive", "zip", _BOOKS["right"], {"a.pdf": ["abab"]},
             {"file_type": "pdf"}),
    compared("multi_apps/0e5303d4", "PDF", "compare_archive", "zip", *(_below("lecture_slides",
             _BOOKS[name]) for name in _BOOKS),
             {"file_path": "lecture_slides", "file_type": "pdf"}, most=0.5),
]  # fmt: skip

# --- the browser ---

_CHROME = ".config/google-chrome/Default"
_JAL = "https://jalammar.github.io/illustrated-transformer/"


def _bookmarks(*urls: str) -> dict[str, Any]:
    return {"roots": {"bookmark_bar": {"children": [{"type": "url", "name": url, "url": url} for url in urls]}}}


def _tabs(*urls: str) -> list[dict[str, str]]:
    return [{"title": "a tab", "url": url} for url in urls]


_TABS = ("https://www.lonelyplanet.com", "https://www.airbnb.com", "https://www.tripadvisor.com")
_CARS = {"locationName": "Z\u00fcrich", "dropLocationName": "Z\u00fcrich", "filterCriteria_carCategory": "large",
         "filterCriteria_sortBy": "PRICE"}  # fmt: skip
_COFFEE = "drip coffee maker"

BROWSER = [
    got("chrome/030eeff7", "Chrome", "exact_match", {"type": "enable_do_not_track"}, {"expected": "true"},
        f"{_CHROME}/Preferences",
         {"enable_do_not_track": True}, {"enable_do_not_track": False}),
    got("chrome/bb5e4c0d", "Chrome", "match_in_list", {"type": "default_search_engine"}, {"expected": ["Microsoft Bing",
        "Bing"]},
         f"{_CHROME}/Preferences",
         *({"default_search_provider_data": {"template_url_data": {"short_name": name}}} for name in ("Microsoft Bing",
         "Google"))),
    got("chrome/6766f2b8", "Chrome", "is_in_list", {"type": "find_unpacked_extension_path"},
         {"expected": f"{HOME}/Desktop/helloExtension"}, f"{_CHROME}/Preferences",
         *({"extensions": {"settings": {"a": {"path": f"{HOME}/Desktop/{name}"}}}} for name in ("helloExtension", "other"))),
    got("chrome/7a5a7856", "Chrome", "is_expected_bookmarks", {"type": "bookmarks"},
         {"type": "bookmark_bar_websites_urls", "urls": [_JAL]}, f"{_CHROME}/Bookmarks", _bookmarks(_JAL),
         _bookmarks(_JAL, "https://example.org/")),
    valued("chrome/06fe7178", "Chrome", "is_expected_tabs", {"type": "url", "urls": list(_TABS)}, _tabs(*_TABS),
           _tabs(*_TABS[:2])),
    valued("chrome/0d8b7de3", "Chrome", "is_expected_active_tab", {"type": "url", "url": "https://www.drugs.com/npc/"},
           "https://www.drugs.com/npc/", "https://www.drugs.com/npp/"),
    valued("chrome/a96b564e", "Chrome", "is_expected_active_tab",
           {"type": "url", "url": "https://discussions.flightaware.com/t/the-banter-thread/4412"},
           *_tabs("https://discussions.flightaware.com/t/the-banter-thread/4412", "https://discussions.flightaware.com/")),
    valued("chrome/368d9ba4", "Chrome", "is_expected_url_pattern_match", {"expected": ["/manchester/"]},
           "https://www.accuweather.com/en/gb/manchester/m15-6", "https://www.accuweather.com/en/gb/london/ec4a-2"),
    valued("chrome/1704f00f", "Chrome", "check_direct_json_object", {"expected": _CARS}, _CARS, {**_CARS,
           "locationName": "Bern"}),
    valued("chrome/7f52cab9", "Chrome", "check_direct_json_object", {"expected": {"q": _COFFEE}, "expect_in_result": True},
           {"q": f"black {_COFFEE}"}, {"q": "coffee"}),
]  # fmt: skip

# --- VS Code, text, the desktop itself ---

_CODE = ".config/Code/User"
_KEYS = {"key": "ctrl+j", "command": "workbench.action.focusActiveEditorGroup", "when": "terminalFocus"}
_FOLDERS = [{"path": name} for name in ("project", "data1", "data2")]
_THEME = '{"workbench.colorTheme": "Visual Studio Dark"}\n'
_MODULES = [f"{HOME}/Desktop/tetris/{name}.py" for name in ("block", "main", "settings", "tetris")]
_SUITE = "from settings import SPEED\n\n\ndef test():\n    return SPEED == 3\n"
_NAMES = {"expect": [{"key": list(key), "method": "eq", "ref": ref} for key, ref in (
    (("name",), "Test Account"), (("author", "name"), "Test Account"), (("author", "email"), "Test@gmail.com"),
)]}  # fmt: skip


def _suite() -> Case:
    names = [path.rpartition("/")[2] for path in _MODULES]
    evaluator = {
        "result": {"type": "vm_file", "path": _MODULES, "dest": names, "multi": True},
        "expected": {"type": "cloud_file", "path": hub("test.py"), "dest": "test_suite.py"},
        "options": {},
    }
    states = (State(dict.fromkeys(_MODULES, f"SPEED = {speed}\n")) for speed in (3, 4))
    return Case(
        "multi_apps/9219480b",
        "VS Code",
        "check_python_file_by_test_suite",
        evaluator,
        *states,
        gold={"test.py": _SUITE},
    )


REST = [
    ruled("vs_code/276cc624", "VS Code", "check_json_settings", f"{_CODE}/settings.json",
          {"expected": {"editor.wordWrapColumn": 50}}, {"editor.wordWrapColumn": 50, "a": 1}, {"editor.wordWrapColumn": 80}),
    ruled("vs_code/6ed0a554", "VS Code", "check_json_settings", "project.code-workspace", {"expected": {"folders": _FOLDERS}},
          {"folders": _FOLDERS}, {"folders": _FOLDERS[:2]}),
    ruled("vs_code/930fdb3b", "VS Code", "check_json_keybindings", f"{_CODE}/keybindings.json", {"expected": _KEYS}, [_KEYS],
          [{**_KEYS, "key": "ctrl+k"}]),
    ruled("vs_code/982d12a5", "VS Code", "compare_config", f"{_CODE}/settings.json", {"expected": _THEME}, _THEME, "{}\n",
          containment_ok=True),
    got("vs_code/0512bb38", "VS Code", "is_extension_installed", says("extensions"),
         {"type": "contain", "expected": "undefined_publisher.test"}, "extensions", "undefined_publisher.test\n",
         "other.test\n"),
    _suite(),
    compared("vs_code/0ed39f63", "VS Code", "compare_text_file", "txt", "text\n", "test\n"),
    compared("multi_apps/df67aebb", "text", "compare_text_file", "txt", "a  b\n", "ab\n", {"ignore_blanks": True}, "a\tb\n\n"),
    compared("multi_apps/74d5859f", "text", "diff_text_file", "js", "one\ntwo\n", "three\n"),
    ruled("multi_apps/e2392362", "text", "check_json", "_config.yml", _NAMES,
          "name: Test Account\nauthor:\n  name: Test Account\n  email: Test@gmail.com\n",
          "name: Test Account\nauthor:\n  name: Test Account\n  email: other@gmail.com\n", is_yaml=True),
    ruled("multi_apps/26660ad1", "text", "file_contains", "Test/Speed/results.txt", {"expected": ["Ping", "Download",
          "Upload"]},
          "Ping: 1\nDownload: 2\nUpload: 3\n", "Ping: 1\nDownload: 2\n"),
    got("multi_apps/48d05431", "Terminal", "exact_match", says("said"), {"expected": "1\n"}, "said", "1\n", "2\n"),
    got("os/4127319a", "Terminal", "check_include_exclude", says("said"), {"include": ["54"], "exclude": []}, "said",
        "54\n", "53\n"),
    Case("os/b3d4a89c", "any", "infeasible", {}, State(gave_up=True), State()),
]  # fmt: skip

CASES = (*CALC, *WRITER, *IMPRESS, *PICTURES, *MAIL, *FILES, *BROWSER, *REST)
