"""The connection to the host keeps away from descriptors that are the person's."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import torch

from gradtui.events import BackwardEnded
from tests.probe.conftest import Probed


def backward() -> None:
    torch.ones(2, requires_grad=True).sum().backward()


def test_a_file_at_the_number_of_our_closed_connection_is_left_alone(probed: Probed, tmp_path: Path, capfd):
    """A program that makes a daemon of itself closes every descriptor, ours too, and opens files of its own."""
    backward()
    link = probed.probe.session.link
    assert link._socket is not None
    number = link._socket.fileno()
    with (tmp_path / "log").open("wb") as log:
        os.dup2(log.fileno(), number)  # closes ours
    link.send_word(b"to the host")
    backward()
    assert link.dead
    link.forget()
    assert os.write(number, b"still open") == 10
    os.close(number)
    assert (tmp_path / "log").read_bytes() == b"still open"
    assert capfd.readouterr().err == ""


def test_a_closed_stdin_does_not_become_ours(probed: Probed):
    """Nor does a closed stdout: what is written there would go to the host."""
    before = os.dup(0)
    os.close(0)
    try:
        backward()
        assert len(probed.all(BackwardEnded)) == 1
        try:
            os.fstat(0)
        except OSError:
            pass
        else:
            raise AssertionError("descriptor 0 is taken")
    finally:
        os.dup2(before, 0)
        os.close(before)


def test_a_thousand_open_files_are_no_hindrance(probed: Probed):
    """select() cannot wait for a descriptor above 1023."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(2048, hard), hard))
    held: list[int] = []
    try:
        while not held or held[-1] < 1030:
            held.append(os.open(os.devnull, os.O_RDONLY))
        backward()
        link = probed.probe.session.link
        assert isinstance(link._socket, socket.socket)
        assert link._socket.fileno() > 1023
        assert link.poll() is None
    finally:
        for number in held:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
