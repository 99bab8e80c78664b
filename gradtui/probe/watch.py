"""Compares gradients and values with what they were at the last event, and tells what changed: announced or not."""

from __future__ import annotations

from math import isclose, isfinite, isnan, nan
from typing import Any

import torch

from gradtui.probe import measure
from gradtui.probe.registry import Registry, Tracked
from gradtui.probe.session import Session
from gradtui.probe.sites import variables_of
from gradtui.wire.encode import floats, ids

_SAME = 1e-5
"""Relative difference of two norms of one unchanged float32 tensor that rounding can explain."""


_COMPARED_ELEMENTS = 4_000_000


class Watcher:
    """Looks at every watched leaf at each call."""

    def __init__(self, session: Session, registry: Registry) -> None:
        self.session = session
        self.registry = registry
        self.holds = False
        """Some leaf held a gradient when it was last looked at."""

    # -- what nobody announced ------------------------------------------------------------------------------------

    def look(self) -> None:
        """Tell hand-made clears, edits of gradients, and hand-made updates of parameters since the last event."""
        cleared: list[Tracked] = []
        touched: list[tuple[Tracked, torch.Tensor]] = []
        moved: list[Tracked] = []
        gone = 0
        holds = False
        for entry in self.registry.tracked:
            leaf = entry.ref()
            if leaf is None:
                gone += 1
                continue
            if not leaf.is_leaf:
                continue
            grad = leaf.grad
            held = entry.grad
            if grad is None:
                if held:
                    cleared.append(entry)
                    entry.grad = 0
            else:
                holds = True
                if id(grad) != held or grad._version != entry.version:
                    touched.append((entry, grad))
            version = leaf._version
            if version != entry.value_version:
                entry.value_version = version
                if held:
                    moved.append(entry)
                    entry.fingerprint = None
            elif entry.fingerprint is not None and self._differs(entry, leaf):
                moved.append(entry)
                entry.fingerprint = None
        self.holds = holds
        if gone > 64:
            self.registry.prune()
        if moved:
            stack = self.session.local.stack
            inside = {"parent": stack[-1].id} if stack else {}
            self.session.emit("ParametersEdited", None, inside, {"parameters": ids([entry.id for entry in moved])})
        if touched:
            self._tell_touched(touched)
        if cleared:
            for entry in cleared:
                entry.norm = 0.0
            self._tell_cleared("none", cleared)

    def _differs(self, entry: Tracked, leaf: torch.Tensor) -> bool:
        return measure.checksum(leaf.detach()) != entry.fingerprint

    def take_fingerprints(self, entries: list[Tracked]) -> None:
        """Remember the values of leaves that no optimizer owns, so that `W.data -= …` is seen (it bumps no version)."""
        for entry in entries:
            if not entry.owners and (leaf := entry.ref()) is not None:
                entry.fingerprint = measure.checksum(leaf.detach())

    def take_values(self) -> list[tuple[Tracked, int]]:
        """Checksums of the values of all watched leaves, for a look at what a backward changes; empty where that is costly."""
        pairs = [(entry, leaf.detach()) for entry in self.registry.tracked if (leaf := entry.ref()) is not None]
        if sum(leaf.numel() for _, leaf in pairs) > _COMPARED_ELEMENTS:
            return []
        return [(entry, found) for entry, leaf in pairs if (found := measure.checksum(leaf)) is not None]

    def changed_inside(self, values: list[tuple[Tracked, int]]) -> list[Tracked]:
        """Leaves whose values a backward has changed while their gradient is still there (a step inside it clears or uses it)."""
        return [
            entry
            for entry, was in values
            if (leaf := entry.ref()) is not None
            and leaf.is_leaf
            and leaf.grad is not None
            and not entry.spent
            and measure.checksum(leaf.detach()) != was
        ]

    def _tell_cleared(self, how: str, entries: list[Tracked]) -> None:
        self.session.emit(
            "GradsZeroed", None, {"by": "hand", "owner": "", "how": how}, {"parameters": ids([e.id for e in entries])}
        )

    def _tell_touched(self, touched: list[tuple[Tracked, torch.Tensor]]) -> None:
        before = [entry.norm if entry.grad else -1.0 for entry, _ in touched]
        replaced = [id(grad) != entry.grad for entry, grad in touched]
        for entry, grad in touched:
            entry.grad, entry.version, entry.norm = id(grad), grad._version, nan
        entries = [entry for entry, _ in touched]

        def build(after: list[float]) -> list[bytes]:
            return self._edits(entries, before, replaced, after)

        self.session.emit_measured([grad.detach() for _, grad in touched], build)

    def _edits(
        self, entries: list[Tracked], before: list[float], replaced: list[bool], after: list[float]
    ) -> list[bytes]:
        for entry, norm in zip(entries, after, strict=True):
            entry.norm = norm
        zeroed = [i for i, norm in enumerate(after) if norm == 0.0 and before[i] != 0.0]
        edited = [i for i in range(len(after)) if i not in set(zeroed)]
        packets = []
        if zeroed:
            packets.append(
                self.session.fact(
                    "GradsZeroed",
                    None,
                    {"by": "hand", "owner": "", "how": "zeros"},
                    {"parameters": ids([entries[i].id for i in zeroed])},
                )
            )
        if edited:
            was, now = [before[i] for i in edited], [after[i] for i in edited]
            factor = _common_factor(was, now)
            how = "scaled" if factor else ("replaced" if any(replaced[i] for i in edited) else "changed")
            packets.append(
                self.session.fact(
                    "GradsEdited",
                    None,
                    {"how": how, "factor": factor},
                    {
                        "parameters": ids([entries[i].id for i in edited]),
                        "before": floats(was),
                        "after": floats(now),
                        "finite": bytes(
                            isfinite(norm) or _holds_no_numbers(entries[i]) for i, norm in zip(edited, now, strict=True)
                        ),
                    },
                )
            )
        return packets

    def check_contents(self, holding: list[tuple[Tracked, torch.Tensor]]) -> list[float]:
        """Norms of gradients that are there before a backward; edits that bumped no version (`.grad.data.zero_()`) are told.

        On accelerators nothing is read and every norm is NaN.
        """
        grads = [grad.detach() for _, grad in holding]
        if not measure.synchronous(grads):
            return [nan] * len(grads)
        found = measure.norms(grads)
        changed = [
            index
            for index, (entry, _) in enumerate(holding)
            if not isnan(entry.norm)
            and not isclose(found[index], entry.norm, rel_tol=_SAME)
            and (isfinite(found[index]) or isfinite(entry.norm))
        ]
        if changed:
            entries = [holding[i][0] for i in changed]
            before = [entry.norm for entry in entries]
            for made in self._edits(entries, before, [False] * len(entries), [found[i] for i in changed]):
                self.session.link.send(made)
        for (entry, _), norm in zip(holding, found, strict=True):
            entry.norm = norm
        return found

    # -- announced calls ------------------------------------------------------------------------------------------

    def holding(self) -> list[tuple[Tracked, torch.Tensor]]:
        """Leaves that hold a gradient now."""
        found = []
        for entry in self.registry.tracked:
            leaf = entry.ref()
            if leaf is not None and leaf.is_leaf:
                grad = leaf.grad
                if grad is not None:
                    found.append((entry, grad))
        return found

    def settle_clear(self) -> tuple[list[Tracked], str]:
        """After a clear: (leaves that held a gradient and no longer do, what is left of it: none, zeros or nothing)."""
        cleared: list[Tracked] = []
        how = "nothing"
        for entry in self.registry.tracked:
            if not entry.grad:
                continue
            leaf = entry.ref()
            if leaf is None or not leaf.is_leaf:
                continue
            grad = leaf.grad
            if grad is None:
                entry.grad = 0
                how = "none"
            elif id(grad) != entry.grad or grad._version != entry.version:
                entry.grad, entry.version = id(grad), grad._version
                how = "zeros" if how == "nothing" else how
            else:
                continue
            entry.norm = 0.0
            entry.spent = False
            cleared.append(entry)
        return cleared, how

    def remember(self, entries: list[Tracked]) -> list[tuple[Tracked, torch.Tensor]]:
        """Take gradients as they are now for what the last event left."""
        found = []
        for entry in entries:
            leaf = entry.ref()
            if leaf is None or not leaf.is_leaf:
                continue
            grad = leaf.grad
            if grad is None:
                entry.grad = 0
            else:
                entry.grad, entry.version = id(grad), grad._version
                found.append((entry, grad))
        return found

    def rebound(self, frame: Any) -> tuple[list[str], list[Tracked]]:
        """Variables of the person's frame that held a watched plain leaf and now hold a tensor computed from it."""
        names: list[str] = []
        entries: list[Tracked] = []
        plain = [
            e for e in self.registry.tracked if not e.found.registered and not e.owners and e.found.name.isidentifier()
        ]
        if not plain or frame is None:
            return names, entries
        variables = variables_of(frame)
        for entry in plain:
            value = variables.get(entry.found.name)
            leaf = entry.ref()
            if (
                isinstance(value, torch.Tensor)
                and leaf is not None
                and value is not leaf
                and not value.is_leaf
                and value.shape == leaf.shape
                and _comes_from(value, leaf)
            ):
                names.append(entry.found.name)
                entries.append(entry)
        return names, entries


def _comes_from(value: torch.Tensor, leaf: torch.Tensor) -> bool:
    """The leaf, or another version of the same variable, is an operand of the operation that made this value."""
    node = value.grad_fn
    for _ in range(64):
        if node is None:
            return False
        following = [child for child, _ in node.next_functions if child is not None]
        if any(getattr(child, "variable", None) is leaf for child in following):
            return True
        node = following[0] if following else None
    return False


def _common_factor(before: list[float], after: list[float]) -> float:
    """The one factor by which all norms changed; 0 when there is none."""
    factor = 0.0
    for was, now in zip(before, after, strict=True):
        if was == 0.0 and now == 0.0:
            continue
        if not (was > 0.0 and now > 0.0 and isfinite(was) and isfinite(now)):
            return 0.0
        ratio = now / was
        if not factor:
            factor = ratio
        elif not isclose(ratio, factor, rel_tol=1e-3):
            return 0.0
    return 0.0 if isclose(factor, 1.0, rel_tol=1e-4) else factor


def _holds_no_numbers(entry: Tracked) -> bool:
    """On the meta device, or faked: a norm that is not finite means nothing."""
    leaf = entry.ref()
    return leaf is not None and measure.plain(leaf.detach()) is None


_not_measured: dict[int, tuple[Any, Any, bytes]] = {}


def not_measured(entries: list[Tracked]) -> dict[str, Any]:
    """The arrays of a Contributions record for leaves that held nothing before, without any norm."""
    count = len(entries)
    known = _not_measured.get(count)
    if known is None:
        if len(_not_measured) >= 16:
            _not_measured.clear()
        known = _not_measured[count] = floats([nan] * count), floats([-1.0] * count), b"\x01" * count
    unknown, before, finite = known
    return {
        "contributions.parameters": ids([entry.id for entry in entries]),
        "contributions.incoming": unknown,
        "contributions.before": before,
        "contributions.after": unknown,
        "contributions.finite": finite,
    }


def contributions(
    entries: list[Tracked], incoming: list[float], before: list[float], after: list[float], measured: bool = True
) -> dict[str, Any]:
    """The arrays of a Contributions record. Measured norms are exact, so one that is not finite means the tensor is not."""
    if not measured or (isfinite(sum(after)) and (incoming is after or isfinite(sum(incoming)))):
        finite = b"\x01" * len(after)
    else:
        finite = bytes(
            (isfinite(a) and (isfinite(i) or isnan(i))) or (isnan(a) and _holds_no_numbers(entry))
            for entry, i, a in zip(entries, incoming, after, strict=True)
        )
    return {
        "contributions.parameters": ids([entry.id for entry in entries]),
        "contributions.incoming": floats(incoming),
        "contributions.before": floats(before),
        "contributions.after": floats(after),
        "contributions.finite": finite,
    }
