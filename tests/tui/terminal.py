"""A terminal for tests: a child on a PTY, its bytes kept and drawn by pyte, its queries answered as a real one would."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pyte


@dataclass
class Terminal:
    """One child and what it has drawn."""

    pid: int
    master: int
    slave: int
    screen: pyte.Screen
    rate: float = 0.0
    """Bytes a second that the link carries; 0: no limit."""
    raw: bytearray = field(default_factory=bytearray)
    status: int | None = None
    _stream: pyte.ByteStream = field(init=False)

    def __post_init__(self) -> None:
        self._stream = pyte.ByteStream(self.screen)

    @property
    def text(self) -> str:
        """The screen's rows."""
        return "\n".join(self.screen.display)

    def type(self, keys: str) -> None:
        """Send keys."""
        os.write(self.master, keys.encode())

    def resize(self, columns: int, rows: int) -> None:
        """As when the person drags the window."""
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.kill(self.pid, signal.SIGWINCH)

    def wait(self, done: Callable[[], bool], patience: float = 20.0) -> None:
        """Read and draw until `done`."""
        deadline = time.monotonic() + patience
        while not done():
            if time.monotonic() > deadline:
                raise AssertionError(f"never came; the screen was:\n{self.text}")
            self.read(0.02)

    def read(self, seconds: float) -> int:
        """Draw what comes within so many seconds; return how many bytes came."""
        ready, _, _ = select.select([self.master], [], [], seconds)
        if not ready:
            return 0
        most = 65536 if not self.rate else max(int(self.rate * 0.02), 1)
        try:
            data = os.read(self.master, most)
        except OSError:
            data = b""
        if not data:
            time.sleep(0.01)
            return 0
        if self.rate:
            time.sleep(len(data) / self.rate)
        self.raw += data
        self._stream.feed(data)
        for _ in range(data.count(b"\x1b[6n")):
            with contextlib.suppress(OSError):
                os.write(self.master, b"\x1b[1;1R")
        return len(data)

    def ended(self) -> bool:
        """The child is over."""
        if self.status is None:
            self.read(0.0)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
                while self.read(0.0):
                    pass
        return self.status is not None

    def flags(self) -> list[object]:
        """The terminal's line settings."""
        return termios.tcgetattr(self.slave)[:4]


@contextlib.contextmanager
def terminal(command: list[str], columns: int = 80, rows: int = 24, rate: float = 0.0) -> Iterator[Terminal]:
    """Run a command on a PTY of its own."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    before = termios.tcgetattr(slave)
    pid = os.fork()
    if pid == 0:
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        for number in (0, 1, 2):
            os.dup2(slave, number)
        environ = {
            k: v for k, v in os.environ.items() if not k.startswith(("TEXTUAL", "TMUX", "NO_COLOR", "COLUMNS", "LINES"))
        }
        environ |= {
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "PYTHONPATH": os.getcwd(),
            "CI": "1",
            "XDG_CONFIG_HOME": "/nonexistent",
        }
        os.execve(sys.executable, [sys.executable, *command], environ)
    found = Terminal(pid, master, slave, pyte.Screen(columns, rows), rate)
    try:
        assert before[:4] == found.flags()
        yield found
    finally:
        if found.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(master)
        os.close(slave)
