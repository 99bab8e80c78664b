"""One loss's gradients end up in a step that belongs to another loss."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.ledger.state import BackwardRecord
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Fault, Rule, Said, line_key
from gradtui.rules.wording import call, line, loss_of, optimizer_of, them, times


class MixedGradient(Rule):
    """An optimizer's step used gradients that another optimizer's loss had left in its parameters.

    What it means: one backward ran through two networks. The optimizer it was meant for has used it; what it left in the
    other network was still there when that network's own optimizer stepped on its own loss.

    Why it matters: in a GAN the discriminator is then partly trained to call fakes real; in actor-critic code the critic
    follows the policy's loss.

    What to do: clear the other network's gradients before its own backward, detach the tensor that connects them, or switch
    `requires_grad` off around the first backward.
    """

    slug = "mixed-gradient"
    severity = "warning"
    watches = (ev.OptimizerStepped,)

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if not isinstance(event, ev.OptimizerStepped) or len(change.window) < 2 or event.closure:
            return
        left = self._left_behind(change)
        if left is not None:
            yield from self._tell_mixed(left[0], left[1], change, ledger, grave=True)
        else:
            pair = self._two_losses(change)
            if pair is not None:
                yield from self._tell_mixed(pair[0], pair[1], change, ledger, grave=False)

    @staticmethod
    def _left_behind(change: Change) -> tuple[BackwardRecord, BackwardRecord] | None:
        """(a backward another optimizer used before a later backward was added on top, that later one)."""
        assert change.optimizer is not None
        own = change.optimizer.info.id
        last = change.window[-1]
        for record in change.window:
            used = record.used_by
            elsewhere = (
                used and record.used_by_optimizer not in (0, own) and used < change.event.seq and last.seq > used
            )
            if elsewhere and not set(record.parameters).isdisjoint(last.parameters):
                return record, last
        return None

    @staticmethod
    def _two_losses(change: Change) -> tuple[BackwardRecord, BackwardRecord] | None:
        """(a backward that also feeds another optimizer, one that feeds this optimizer alone), from two lines."""
        assert change.optimizer is not None
        own = change.optimizer.info.id
        alone = next((r for r in change.window if r.owners == (own,)), None)
        if alone is None:
            return None
        for record in change.window:
            wider = len(record.owners) > 1 and line_key(record.site) != line_key(alone.site)
            if wider and not set(record.parameters).isdisjoint(alone.parameters):
                return record, alone
        return None

    def _tell_mixed(
        self, foreign: BackwardRecord, own: BackwardRecord, change: Change, ledger: Ledger, grave: bool
    ) -> Iterator[Finding]:
        later = own if own.seq > foreign.seq else foreign
        key = f"{'left' if grave else 'two'} {line_key(foreign.site)} {line_key(change.event.site)}"
        fault = self.fault(key, "backward", later.ordinal, later.seq, foreign.site, "warning" if grave else "info")
        if not fault.count:
            inside = set(foreign.parameters)
            owned = set(change.optimizer.info.parameters) if change.optimizer else set()
            fault.add(n for n in own.parameters if n in inside and n in owned)
            fault.words.update(loss=foreign.loss, own=own.loss)
            fault.own(change.optimizer)
            others = [o for o in foreign.owners if change.optimizer is None or o != change.optimizer.info.id]
            fault.words["other"] = optimizer_of(others[0], ledger) if others else "another optimizer"
            fault.relate(change.event.site, own.site)
        fault.hit(change.event.seq)
        if grave or fault.status != "confirmed":
            fault.become("confirmed" if not grave or fault.count >= 2 else "suspected")
        yield from self.tell(fault, ledger)

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        words = fault.words
        foreign, own, name = (
            loss_of(words.get("loss", "")),
            loss_of(words.get("own", "")),
            words.get("name", "the optimizer"),
        )
        step = fault.related[0] if fault.related else None
        message = (
            f"Steps of `{name}` mixed the gradients of {foreign}, which also feeds {words.get('other', 'another optimizer')}, with "
            f"those of {own} in {them(fault.ids, ledger)} ({times(fault.count)})."
        )
        fix = (
            f"If {foreign} is not meant to train them, clear `{name}` before the backward of {own}, or detach what leads from "
            f"{line(fault.site)} into them."
        )
        return Said(
            message, fix, (Evidence("step", call(step, "step")), Evidence("losses in one step", "2", "1, if not meant"))
        )
