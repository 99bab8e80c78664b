"""The ledgers of all processes of a run."""

from __future__ import annotations

from gradtui.events import Event
from gradtui.ledger.change import Change
from gradtui.ledger.ledger import Ledger


class RunLedger:
    """Routes each event to the ledger of its process."""

    def __init__(self) -> None:
        self.processes: dict[int, Ledger] = {}

    def apply(self, event: Event) -> Change:
        """Fold one event and tell what it changed."""
        return self.of(event.process).apply(event)

    def of(self, process: int) -> Ledger:
        """The ledger of one process, made when it is first asked for."""
        ledger = self.processes.get(process)
        if ledger is None:
            ledger = self.processes[process] = Ledger()
        return ledger
