"""Every key, in one table: bindings, footer and help are made from it, and the settings file remaps by these ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from textual.binding import Binding

State = Literal["starting", "running", "stopped", "ended"]
ANY: tuple[State, ...] = ("starting", "running", "stopped", "ended")
LIVE: tuple[State, ...] = ("starting", "running", "stopped")
STOPPED: tuple[State, ...] = ("stopped",)


@dataclass(frozen=True, slots=True)
class Key:
    """One action and the keys that reach it."""

    id: str
    keys: str
    """As Textual spells them, comma-separated; the first is the one that is shown."""
    action: str
    label: str
    """One or two words for the footer; empty keeps it out of the footer."""
    help: str
    when: tuple[State, ...] = ANY
    scope: str = "app"
    """`app`, or the name of the pane that must have the focus."""
    group: str = ""
    """Heading in the help screen."""
    shown: str = ""
    """How the key is written, where that is not its name."""


def _run(id: str, keys: str, action: str, label: str, help: str, when: tuple[State, ...] = STOPPED) -> Key:
    return Key(id, keys, action, label, help, when, group="Run")


def _time(id: str, keys: str, action: str, label: str, help: str, shown: str = "") -> Key:
    return Key(id, keys, action, label, help, group="Time", shown=shown)


def _screen(id: str, keys: str, action: str, label: str, help: str, shown: str = "") -> Key:
    return Key(id, keys, action, label, help, group="Screen", shown=shown)


def _pane(pane: str, id: str, keys: str, action: str, label: str, help: str, shown: str = "") -> Key:
    return Key(f"{pane}.{id}", keys, action, label, help, scope=pane, group=pane, shown=shown)


KEYS: tuple[Key, ...] = (
    _run("step.over", "n,f10", "step_over", "Next", "run this gradient call, stop before the next one"),
    _run("step.into", "s,f11", "step_into", "Into", "go into this call (a step's closure)"),
    _run("step.out", "f,shift+f11", "finish_window", "Finish", "finish the accumulation window: run to after its step"),
    _run("run.continue", "c,f5", "continue", "Continue", "run on, to a breakpoint or an error finding"),
    _run("run.pause", "space,p,ctrl+c", "pause", "Pause", "pause a run, or let a stopped one continue", LIVE),
    _run("run.backward", "B", "run_to('backward')", "Backward", "run to the next backward"),
    _run("run.accumulate", "A", "accumulate", "", "run to the next write into the selected parameter's gradient"),
    _run("run.optimizer", "O", "run_to('step')", "Optimizer", "run to the next optimizer step"),
    _run("run.zero", "Z", "run_to('zero_grad')", "Zero", "run to the next clearing of gradients"),
    _run("run.warning", "W", "warning", "Finding", "run to the next finding; in a finished run, go to it", ANY),
    _run("step.cursor", "t", "to_cursor", "", "run to a gradient call on the line under the cursor in Source"),
    _run(
        "break.toggle",
        "b,f9",
        "breakpoint",
        "Break",
        "breakpoint: on the line in Source, on the parameter's gradient elsewhere",
        LIVE,
    ),
    _run("frame.up", "u", "frame(1)", "", "source of the caller"),
    _run("frame.down", "d", "frame(-1)", "", "back towards the call"),
    _run("script.type", "i", "type", "Type", "type a line to the script's standard input", LIVE),
    _run(
        "script.terminal",
        "exclamation_mark",
        "terminal",
        "Terminal",
        "lend the script the terminal (input(), pdb); ctrl+] returns",
        LIVE,
    ),
    _time("event.previous", "left_square_bracket", "event(-1)", "Back", "the event before", "["),
    _time("event.next", "right_square_bracket", "event(1)", "On", "the event after", "]"),
    _time("step.previous", "left_curly_bracket", "iteration(-1)", "Step back", "one optimizer step back", "{"),
    _time("step.next", "right_curly_bracket", "iteration(1)", "Step on", "one optimizer step on", "}"),
    _time("live", "H", "live", "Live", "back to now"),
    *(
        _screen(f"pane.{number}", str(number), f"pane({number})", "", f"show pane {number}: {name}")
        for number, name in enumerate(
            ("Source", "Events", "Parameters", "Gradient", "Accumulation", "Flow", "Findings", "Output"), 1
        )
    ),
    _screen("focus.next", "tab", "focus_next_pane", "", "next pane"),
    _screen("focus.previous", "shift+tab", "focus_previous_pane", "", "pane before"),
    _screen("zoom", "z,underscore", "zoom", "Zoom", "this pane over the whole screen, and back", "z"),
    _screen("process", "r", "process", "", "next process (rank), when several take part"),
    _screen("strip.more", "plus", "strip(1)", "", "one more line of source above the pane (small screens)", "+"),
    _screen("strip.less", "minus", "strip(-1)", "", "one line less", "-"),
    _screen("explain", "K", "explain", "Explain", "what the thing under the cursor means"),
    _screen("copy", "y", "copy", "", "copy the row under the cursor"),
    _screen("copy.pane", "Y", "copy_pane", "", "copy the whole pane as text"),
    _screen("export", "e", "export", "", "write the parameters to a CSV file"),
    _screen("picture", "E", "picture", "", "save the screen as an SVG picture"),
    _screen("freeze", "F", "freeze", "", "freeze the display while the run goes on"),
    _screen("output", "o", "pane(8)", "", "the script's output"),
    _screen("detach", "D", "detach", "", "leave the screen; the script runs on"),
    _screen("theme", "T", "theme", "", "dark, light, high contrast, terminal colours"),
    _screen("palette", "colon,ctrl+p", "palette", "", "command palette", ":"),
    _screen("help", "question_mark,f1", "help", "Help", "this help", "?"),
    _screen("quit", "q,escape", "back", "Quit", "close, unzoom; at top level leave"),
    _screen("quit.now", "ctrl+q", "quit_now", "", "end the script and leave at once", "ctrl+q"),
    _screen("suspend", "ctrl+z", "suspend", "", "pause the run and give the terminal back; fg returns", "ctrl+z"),
    _screen("redraw", "ctrl+l", "redraw", "", "paint everything again", "ctrl+l"),
    Key("move.down", "down,j", "move(1)", "", "down", scope="list", group="Lists", shown="↓ j"),
    Key("move.up", "up,k", "move(-1)", "", "up", scope="list", group="Lists", shown="↑ k"),
    Key("move.page_down", "pagedown", "page(1)", "", "a page down", scope="list", group="Lists", shown="PgDn"),
    Key("move.page_up", "pageup", "page(-1)", "", "a page up", scope="list", group="Lists", shown="PgUp"),
    Key("move.first", "home,g", "first", "", "first row", scope="list", group="Lists", shown="Home g"),
    Key("move.last", "end,G", "last", "", "last row", scope="list", group="Lists", shown="End G"),
    Key("open", "enter", "open", "Open", "open what is under the cursor", scope="list", group="Lists"),
    Key(
        "filter",
        "slash",
        "filter",
        "Filter",
        "search; in Parameters filter: part of a name, !nan, !zero, >1e-3, <1e-6",
        scope="list",
        group="Lists",
        shown="/",
    ),
    Key("match.next", "full_stop", "match(1)", "", "next match", scope="list", group="Lists", shown="."),
    Key("match.previous", "comma", "match(-1)", "", "match before", scope="list", group="Lists", shown=","),
    _pane("parameters", "sort", "S,greater_than_sign", "sort", "Sort", "sort by the next column"),
    _pane("parameters", "sort.previous", "less_than_sign", "sort(-1)", "", "sort by the column before", "<"),
    _pane("gradient", "view", "v", "view", "View", "heat map, values"),
    _pane("gradient", "scale", "m", "scale", "Scale", "linear, logarithmic, rank"),
    _pane("gradient", "absolute", "a", "absolute", "", "sizes without their signs, and back"),
    _pane("gradient", "what", "w", "what", "Grad/value", "the gradient, or the parameter itself"),
    _pane("gradient", "slice", "x", "slice(1)", "", "next slice of a tensor of more than two dimensions"),
    _pane("gradient", "slice.previous", "X", "slice(-1)", "", "slice before"),
    _pane("gradient", "left", "left,h", "shift(-1)", "", "left", "← h"),
    _pane("gradient", "right", "right,l", "shift(1)", "", "right", "→ l"),
)
"""In the order of footer and help."""


def bindings(scope: str) -> list[Binding]:
    """Textual bindings of one scope."""
    return [
        Binding(key.keys, key.action, key.label, show=False, id=key.id, priority=key.id in ("quit.now", "suspend"))
        for key in KEYS
        if key.scope == scope
    ]


NAMES = {
    "question_mark": "?",
    "exclamation_mark": "!",
    "greater_than_sign": ">",
    "escape": "Esc",
    "enter": "Enter",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "f10": "F10",
    "f11": "F11",
    "f5": "F5",
    "f9": "F9",
    "f1": "F1",
    "shift+f11": "shift+F11",
}
"""How keys are written on screen, where Textual spells them otherwise."""


def shown(key: Key, keymap: dict[str, str] | None = None) -> str:
    """How the key is written on screen, after remapping."""
    if keymap and key.id in keymap:
        return keymap[key.id].split(",")[0]
    first = key.keys.split(",")[0]
    return key.shown or NAMES.get(first, first)


_ALWAYS = ("help", "quit")
_FOOTERS: dict[State, tuple[str, ...]] = {
    "starting": ("run.pause",),
    "running": ("run.pause", "zoom"),
    "stopped": (
        "step.over", "step.into", "step.out", "run.continue", "run.backward", "run.optimizer", "run.zero",
        "run.warning", "break.toggle", "zoom", "event.previous", "explain",
    ),
    "ended": ("event.previous", "event.next", "step.previous", "step.next", "run.warning", "zoom", "explain"),
}  # fmt: skip
_PAST = ("event.previous", "event.next", "live", "step.previous", "step.next", "run.warning", "zoom", "explain")


def footer(
    state: State, scope: str, past: bool, width: int, remapped: dict[str, str], asking: bool = False
) -> list[tuple[str, str]]:
    """Keys worth showing now and their labels: those of the state that fit, the focused pane's, help and quit always."""
    table = {key.id: key for key in KEYS}
    own = [key for key in KEYS if key.scope == scope != "app" and key.label and state != "starting"]
    if scope in ("parameters", "findings") and state != "starting":
        own.append(table["filter"] if scope == "parameters" else table["open"])
    wanted = [table[id] for id in (_PAST if past else _FOOTERS[state])]
    if asking:
        wanted = [table["script.type"], table["script.terminal"], *wanted]
    half = 4 if own else len(wanted)
    ends = [(shown(table[id], remapped), table[id].label) for id in _ALWAYS]
    room = width - 2 - sum(_size(item) for item in ends)
    found: list[tuple[str, str]] = []
    for key in (*wanted[:half], *own, *wanted[half:]):
        item = (shown(key, remapped), key.label)
        if _size(item) <= room:
            found.append(item)
            room -= _size(item)
    return [*found, *ends]


def _size(item: tuple[str, str]) -> int:
    return len(item[0]) + len(item[1]) + 3


def allowed(key: Key, state: State) -> bool:
    """The key does something in this state."""
    return state in key.when
