"""A small process that keeps the debuggee's terminal open and drained when the host dies, so that training goes on."""

from __future__ import annotations

import contextlib
import os
import signal


class Keeper:
    """Forked from the host; waits on a pipe that breaks when the host is gone."""

    def __init__(self, master: int) -> None:
        reading, self._pipe = os.pipe()
        os.set_inheritable(self._pipe, False)
        self._pid = os.fork()
        if self._pid == 0:
            status = 1
            try:
                os.close(self._pipe)
                _keep(reading, master)
                status = 0
            finally:
                os._exit(status)
        os.close(reading)

    def dismiss(self) -> None:
        """The host ends in good order: nothing is left to keep."""
        with contextlib.suppress(OSError):
            os.write(self._pipe, b"x")
            os.close(self._pipe)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)


def _keep(reading: int, master: int) -> None:
    os.setsid()
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    for descriptor in os.listdir(
        "/dev/fd"
    ):  # the host's sockets above all: with us they would outlive it, and seem to listen
        if int(descriptor) not in (reading, master):
            with contextlib.suppress(OSError):
                os.close(int(descriptor))
    if os.read(reading, 1):
        return
    os.set_blocking(master, True)
    while True:
        try:
            if not os.read(master, 65536):
                return
        except OSError:
            return  # the last process on the terminal has ended
