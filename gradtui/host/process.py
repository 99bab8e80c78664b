"""Starts and supervises the debuggee: on a terminal of its own, or on ours as it is."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
from collections.abc import Callable

from gradtui.errors import UsageError
from gradtui.host.keeper import Keeper

Ended = Callable[[int | None, int | None], None]


class Debuggee:
    """The program that was started. Exit status goes to `on_end(exit_code, signal)` once."""

    def __init__(self, on_end: Ended) -> None:
        self._on_end = on_end
        self._child: subprocess.Popen[bytes] | None = None
        self._pidfd = -1
        self.master = -1
        self.keeper: Keeper | None = None
        self.ended = False

    @property
    def pid(self) -> int:
        """Process id; 0 before the start."""
        return self._child.pid if self._child is not None else 0

    def start(
        self, command: tuple[str, ...], env: dict[str, str], size: tuple[int, int] | None, umask: int = -1
    ) -> None:
        """Start it; `size` is (rows, columns) of a terminal of its own, None for the one we have; `umask` -1 is ours. What we
        inherited it inherits. Raises UsageError when it cannot run."""
        try:
            if size is None:
                self._child = subprocess.Popen(command, env=env, executable=command[0], umask=umask, close_fds=False)
            else:
                self._start_on_pty(command, env, size, umask)
        except OSError as error:
            raise UsageError(f"{command[0]}: {error.strerror or error}") from error
        self._watch()

    def _start_on_pty(self, command: tuple[str, ...], env: dict[str, str], size: tuple[int, int], umask: int) -> None:
        master, slave = pty.openpty()
        self.master = master
        self.resize(*size)
        self.keeper = Keeper(master)

        def own_terminal() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        try:
            self._child = subprocess.Popen(
                command,
                env=env,
                executable=command[0],
                stdin=slave,
                stdout=slave,
                stderr=slave,
                start_new_session=True,
                preexec_fn=own_terminal,
                umask=umask,
                close_fds=False,
            )
        finally:
            os.close(slave)
        os.set_blocking(master, False)

    def _watch(self) -> None:
        assert self._child is not None
        self._pidfd = os.pidfd_open(self._child.pid)
        asyncio.get_running_loop().add_reader(self._pidfd, self._reap)

    def _reap(self) -> None:
        assert self._child is not None
        if self._child.poll() is None:
            return
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        self.ended = True
        status = self._child.returncode
        self._on_end(status if status >= 0 else None, -status if status < 0 else None)

    def resize(self, rows: int, columns: int) -> None:
        """Size of its terminal; it is told by SIGWINCH."""
        if self.master >= 0:
            with contextlib.suppress(OSError):
                fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, data: bytes) -> None:
        """Keys for its terminal."""
        if self.master >= 0:
            with contextlib.suppress(OSError):
                os.write(self.master, data)

    def signal(self, number: int, group: bool = True) -> None:
        """Send a signal to it, and to what it started on its terminal."""
        if self._child is None or self.ended:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if group and self.master >= 0:
                os.killpg(self._child.pid, number)
            else:
                os.kill(self._child.pid, number)

    def close(self) -> None:
        """Let go of the terminal and dismiss the keeper."""
        if self.keeper is not None:
            self.keeper.dismiss()
        if self.master >= 0:
            with contextlib.suppress(OSError):
                os.close(self.master)
            self.master = -1


def name_of(number: int) -> str:
    """`SIGKILL` for 9."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
