"""What the pointer looks like, by CSS's words for it.

X clients name their cursors in several traditions: the fonts of X (`X11/cursorfont.h`), Qt, CSS, and hashes of the bitmaps that
older programs draw, by which themes replace them. This module owns the words for those names. They follow GTK 3
(`gdk/x11/gdkcursor-x11.c`, `name_map`), Qt 6 (`qxcbcursor.cpp`, `cursorNames`) and the links of the Adwaita theme of cursors.
"""

from __future__ import annotations

_NAMES = {
    "default": "left_ptr arrow top_left_arrow",
    "none": "blank",
    "help": "question_arrow left_ptr_help whats_this 5c6cd98b3f3ebcb1f9c7f1c204630408 d9ce0ab605698f320427677b458ad60b",
    "pointer": "hand hand1 hand2 pointing_hand 9d800788f1b08800ae810202380a0822 e29285e634086352946a0e7090d73106",
    "progress": "left_ptr_watch half-busy 08e8e1c95fe2fc01f976f1e063a24ccd 3ecb610c1bf2410f44200f48c40d3599",
    "wait": "watch",
    "cell": "plus",
    "crosshair": "cross tcross cross_reverse diamond_cross",
    "text": "xterm ibeam",
    "alias": "link dnd-link 3085a0e285430894940527032f8b26df 640fb0e74195791501fd1ed57b41487f",
    "copy": "dnd-copy 1081e37283d90000800003c07f3ef6bf 6407b0e94181790501fd1e167b474872",
    "move": "fleur size_all dnd-move 4498f0e0c1937ffe01fd06f973665830 9081237383d90e509aa00f00170e968f",
    "no-drop": "circle dnd-none dnd-no-drop",
    "not-allowed": "crossed_circle forbidden 03b6e0fcb3499374a867c041f52298f0",
    "grab": "openhand",
    "grabbing": "closedhand",
    "col-resize": "split_h",
    "row-resize": "split_v",
    "n-resize": "top_side",
    "e-resize": "right_side",
    "s-resize": "bottom_side",
    "w-resize": "left_side",
    "ne-resize": "top_right_corner",
    "nw-resize": "top_left_corner",
    "se-resize": "bottom_right_corner",
    "sw-resize": "bottom_left_corner",
    "ew-resize": "sb_h_double_arrow h_double_arrow size_hor 028006030e0e7ebffc7f7070c0600140"
    " 14fef782d02440884392942c11205230",
    "ns-resize": "sb_v_double_arrow v_double_arrow double_arrow size_ver 00008160000006810000408080010102"
    " 2870a09082c103050810ffdffffe0204",
    "nesw-resize": "fd_double_arrow size_bdiag fcf1c3c7cd4491d801f1e1c78f100000",
    "nwse-resize": "bd_double_arrow size_fdiag c7088f0f3e6c8088236ef8e1e3e70000",
}
_SHAPES = {name: shape for shape, names in _NAMES.items() for name in names.split()}


def pointer_shape(name: str) -> str:
    """CSS's word for a cursor that an application gave this name; the name itself where CSS has none, or where it is CSS's."""
    return _SHAPES.get(name, name)
