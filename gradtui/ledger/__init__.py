"""Events folded into the state of every gradient; pure."""

from gradtui.ledger.change import Change
from gradtui.ledger.ledger import Ledger
from gradtui.ledger.run import RunLedger
from gradtui.ledger.snapshot import restore, snapshot

__all__ = ["Change", "Ledger", "RunLedger", "restore", "snapshot"]
