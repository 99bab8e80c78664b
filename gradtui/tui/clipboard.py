"""Text to the person's clipboard by whatever route works: tmux's buffer, OSC 52, and always a file; says which it took."""

from __future__ import annotations

import base64
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

MOST = 74_000
"""Bytes: terminals drop longer OSC 52 sequences."""


def copy(text: str, write: Callable[[str], object], environ: Mapping[str, str] = os.environ) -> str:
    """Copy, and return one line that says what happened. `write` sends a sequence to the terminal."""
    data = text.encode("utf-8", "replace")
    cut = " (cut)" if len(data) > MOST else ""
    data = data[:MOST]
    file = _to_file(data, environ)
    kept = f"; also in {file}" if file else ""
    lines = text.count("\n") + 1
    what = f"{lines} lines" if lines > 1 else "a line"
    if "TMUX" in environ and _to_tmux(data):
        return f"copied {what}{cut} through tmux{kept}"
    write(sequence(data, inside_screen="STY" in environ))
    return f"copied {what}{cut} by OSC 52{kept}"


def sequence(data: bytes, inside_screen: bool = False) -> str:
    """OSC 52, wrapped so that GNU screen passes it on."""
    plain = f"\x1b]52;c;{base64.b64encode(data).decode()}\x07"
    return f"\x1bP{plain}\x1b\\" if inside_screen else plain


def _to_tmux(data: bytes) -> bool:
    try:
        done = subprocess.run(
            ["tmux", "load-buffer", "-w", "-"], input=data, capture_output=True, timeout=2, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def _to_file(data: bytes, environ: Mapping[str, str]) -> Path | None:
    folder = Path(environ.get("XDG_RUNTIME_DIR") or Path(tempfile.gettempdir()) / f"gradtui-{os.getuid()}") / "gradtui"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = folder / "clip.txt"
        file.write_bytes(data)
    except OSError:
        return None
    return file
