"""Decides before each gradient call whether the run stops there, and waits while it does.

In free-run a check costs one look at a byte of shared memory. While waiting, requests of the host are answered in the person's
own thread; Ctrl-C raises KeyboardInterrupt at the person's line, as it would without us.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any

from gradtui.probe.link import Link
from gradtui.wire.encode import packet

_SYNC = packet({"t": "sync"})
_VERDICT_CREDIT = 1.5
"""Seconds that may be spent on verdicts before the share counts."""
_VERDICT_SHARE = 0.05


class Gate:
    """One a process. `armed` is False when no call can stop."""

    def __init__(self, link: Link, answer: Callable[[dict[str, Any]], bytes | None]) -> None:
        self.link = link
        self.answer = answer
        self.armed = False
        self._stops: frozenset[str] = frozenset(("backward", "step", "zero_grad"))
        self._mode = "free"
        self._depth = 0
        self._window_done = False
        self._until: dict[str, Any] = {}
        self._breakpoints: list[dict[str, Any]] = []
        self._pending = ""
        self._verdicts = False
        self._spent = 0.0
        self._began = monotonic()

    def configure(self, config: dict[str, Any]) -> None:
        """Take the host's first word: whether to stop at the first call, at which kinds, and breakpoints."""
        self._stops = frozenset(config.get("stops") or self._stops)
        self._breakpoints = list(config.get("breakpoints") or ())
        self._verdicts = bool(config.get("verdicts"))
        self._began = monotonic()
        self._mode = "into" if config.get("stop_first") else "free"
        self._arm()

    def _arm(self) -> None:
        self.armed = self._mode != "free" or bool(self._breakpoints) or bool(self._pending)

    def attend(self) -> None:
        """Read requests that came while the program ran: pause, breakpoints."""
        self.link.clear_attention()
        while (request := self.link.poll()) is not None:
            self._take(request)

    def wait_for_verdict(self) -> None:
        """In a free run with a screen: let the host judge all that has happened before the next call, so that a proved fault stops
        the run right there. A round trip each; done as often as a small share of the run's time pays for."""
        if not self._verdicts or self._mode != "free" or self.link.behind:  # an accelerator is never waited for
            return
        now = monotonic()
        if self._spent > _VERDICT_CREDIT + _VERDICT_SHARE * (now - self._began):
            return
        self.link.send_word(_SYNC)
        while (request := self.link.receive()) is not None:
            if request.get("do") == "synced":
                break
            self._take(request)
        self._spent += monotonic() - now

    def _take(self, request: dict[str, Any]) -> bool:
        """Act on a request; True when it lets a stopped run go on."""
        match request.get("do"):
            case "pause":
                self._pending = request.get("reason") or "pause"
            case "set_stops":
                self._stops = frozenset(request["kinds"])
            case "set_breakpoints":
                self._breakpoints = list(request["breakpoints"])
            case "step_over" | "step_into" | "finish_window" | "continue" | "run_to" as move:
                self._go(move, request)
                self._arm()
                return True
            case _:
                reply = self.answer(request)
                if reply is not None:
                    self.link.send_word(reply)
        self._arm()
        return False

    def _go(self, move: str, request: dict[str, Any]) -> None:
        self._pending = ""
        self._until = {}
        self._window_done = False
        match move:
            case "step_over":
                self._mode = "over"
            case "step_into":
                self._mode = "into"
            case "finish_window":
                self._mode = "out" if self._depth else "window"
            case "run_to":
                self._mode = "until"
                self._until = request
            case _:
                self._mode = "free"

    def reason(self, kind: str, depth: int, site: tuple[str, int]) -> str:
        """Why to stop before this call; empty to go on. `site` is the person's file and line."""
        if self._pending:
            return self._pending
        for point in self._breakpoints:
            if _matches(point, kind, site):
                return f"breakpoint {point['id']}"
        mode = self._mode
        if mode == "until":
            return self._until_reason(kind, site)
        if mode == "free" or kind not in self._stops:
            return ""
        if mode == "into":
            return "step"
        if mode == "over":
            return "step" if depth <= self._depth else ""
        if mode == "out":
            return "left the call" if depth < self._depth else ""
        return "window finished" if self._window_done and depth == 0 else ""

    def _until_reason(self, kind: str, site: tuple[str, int]) -> str:
        until = self._until
        if kind in (until.get("kinds") or ()):
            return f"next {kind}"
        if until.get("line") and site[1] == until["line"] and site[0] == until.get("file"):
            return f"line {site[1]}"
        return ""

    def stepped(self) -> None:
        """A step at top level has run: an accumulation window is finished."""
        self._window_done = True

    def wrote(self, parameters: list[int]) -> None:
        """A backward has written to these parameters: stop before the next call if one of them was waited for."""
        if self._mode == "until" and self._until.get("parameter") in parameters:
            self._pending = "the parameter was written"
        for point in self._breakpoints:
            if point.get("parameter") and point["parameter"] in parameters:
                self._pending = f"breakpoint {point['id']}"
        self._arm()

    @property
    def watches_writes(self) -> bool:
        """Some parameter is waited for."""
        return bool(self._until.get("parameter")) or any(point.get("parameter") for point in self._breakpoints)

    def stop(self, where: bytes, depth: int) -> None:
        """Tell the host where we stand, and wait until it lets the program go on; at once when the host is gone."""
        self._pending = ""
        self._depth = depth
        self.link.send_word(where)
        while (request := self.link.receive()) is not None:
            if self._take(request):
                return
        self._mode = "free"
        self._breakpoints = []
        self._arm()


def _matches(point: dict[str, Any], kind: str, site: tuple[str, int]) -> bool:
    if point.get("parameter") or point.get("rule"):
        return False
    if point.get("kind") and point["kind"] != kind:
        return False
    if point.get("line"):
        return site[1] == point["line"] and (not point.get("file") or site[0] == point["file"])
    return bool(point.get("kind"))
