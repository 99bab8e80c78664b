"""Runs every program of this folder under the probe and keeps what it saw, so that tests judge it without torch.

python -m tests.rules.programs.record            those that have no recording yet
python -m tests.rules.programs.record NAME …     these again
"""

from __future__ import annotations

import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

import msgspec

from gradtui import events as ev
from gradtui.events import Event
from tests.rules.programs.faults import FAULTS
from tests.rules.programs.innocents import HEAD, INNOCENTS

STORE = Path(__file__).with_name("recordings.bin")

Recording = tuple[int | None, list[Event]]
"""(exit code, events)."""


def programs() -> dict[str, str]:
    """Text of every program by name; `fault/name` and `twin/name` belong together."""
    found = {f"right/{name}": HEAD + code for name, code in INNOCENTS.items()}
    for name, faulty in FAULTS.items():
        found[f"fault/{name}"] = faulty.script(True)
        found[f"twin/{name}"] = faulty.script(False)
    return found


def load() -> dict[str, Recording]:
    """Every recording by its program's name."""
    if not STORE.exists():
        return {}
    raw = msgspec.msgpack.decode(zlib.decompress(STORE.read_bytes()))
    return {name: (code, [_event(*item) for item in items]) for name, (code, items) in raw.items()}


def save(recordings: dict[str, Recording]) -> None:
    """Keep recordings."""
    raw = {
        name: (code, [(type(event).__name__, _plain(event)) for event in events])
        for name, (code, events) in sorted(recordings.items())
    }
    STORE.write_bytes(zlib.compress(msgspec.msgpack.encode(raw), 9))


def _event(kind: str, fields: dict[str, Any]) -> Event:
    return msgspec.convert(fields, ev.EVENTS[kind])


def _plain(event: Event) -> dict[str, Any]:
    fields = msgspec.to_builtins(event)
    for name in ("pid", "time", "duration", "python", "torch", "argv"):
        if name in fields:
            fields[name] = type(fields[name])()
    return {name: _local(value) for name, value in fields.items()}


def _local(value: Any) -> Any:
    """Without the folder that it happened to run in."""
    if isinstance(value, dict):
        return {name: Path(item).name if name == "file" and item else _local(item) for name, item in value.items()}
    return [_local(item) for item in value] if isinstance(value, list) else value


def run(text: str) -> Recording:
    """Run one program under the probe."""
    from gradtui.host.check import check
    from gradtui.host.launch import of_script
    from gradtui.rules.judge import Judge, JudgeSettings

    seen: list[Event] = []
    feed = Judge.feed

    def keep(self: Judge, event: Event) -> Any:
        seen.append(event)
        return feed(self, event)

    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "script.py")
        script.write_text(text)
        Judge.feed = keep  # type: ignore[method-assign]
        try:
            ending = check(of_script(str(script), ()), JudgeSettings()).ending
        finally:
            Judge.feed = feed  # type: ignore[method-assign]
    return ending.exit_code, seen


def main(wanted: list[str]) -> None:
    """Record what is asked for."""
    recordings = {name: found for name, found in load().items() if name in programs()}
    for name, text in programs().items():
        if name in wanted or (not wanted and name not in recordings):
            recordings[name] = run(text)
            print(name, len(recordings[name][1]), file=sys.stderr)
            save(recordings)


if __name__ == "__main__":
    main(sys.argv[1:])
