"""How findings name calls, lines, counts and figures, so that all of them speak alike."""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan
from pathlib import PurePath

from gradtui.events import CallSite
from gradtui.ledger import Ledger


def line(site: CallSite | None) -> str:
    """`train.py:35`; "a line that could not be found" without one."""
    return f"{PurePath(site.file).name}:{site.line}" if site is not None else "a line that could not be found"


def call(site: CallSite | None, otherwise: str) -> str:
    """The call as written with its line: "`loss.backward()` (train.py:35)"."""
    if site is None:
        return otherwise
    source = shorten(site.source, 60)
    return f"`{source}` ({line(site)})" if source else f"{otherwise} ({line(site)})"


def shorten(text: str, width: int) -> str:
    """One line of at most so many characters."""
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"


def some(names: Iterable[str], total: int = 0, most: int = 3) -> str:
    """The first few names: "conv1.weight, conv1.bias and 4 more"."""
    names = list(names)
    total = max(total, len(names))
    shown = names[:most]
    if not shown:
        return ""
    if total <= len(shown):
        return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1]
    return ", ".join(shown) + f" and {total - len(shown)} more"


def plural(count: int, noun: str, several: str = "") -> str:
    """ "1 parameter", "6 parameters"."""
    return f"{count:,} {noun if count == 1 else several or noun + 's'}"


def them(ids: Iterable[int], ledger: Ledger, noun: str = "parameter") -> str:
    """ "6 parameters (conv1.weight, conv1.bias and 4 more)", or the name alone when there is one."""
    ids = list(ids)
    if len(ids) == 1:
        return ledger.parameter(ids[0]).info.name
    return f"{plural(len(ids), noun)} ({some(ledger.names(ids[:3]), len(ids))})"


def number(value: float) -> str:
    """Three significant digits, as people write them."""
    if isnan(value):
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Inf" if value > 0 else "-Inf"
    if value == int(value) and abs(value) < 1e5:
        return f"{int(value):,}"
    return f"{value:.3g}"


def times(count: int) -> str:
    """ "once", "twice", "12 times"."""
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def loss_of(text: str) -> str:
    """The loss expression in backticks; "the loss" when it is not known."""
    return f"`{shorten(text, 40)}`" if text else "the loss"


def optimizer_of(number: int, ledger: Ledger) -> str:
    """An optimizer's name in backticks, "a hand-written update" for none."""
    known = ledger.optimizers.get(number)
    return f"`{known.info.name}`" if known is not None else "a hand-written update"
