"""Which finding explains which: a consequence is folded under its cause, so that one fault is told once."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from gradtui.rules.finding import Finding

EXPLAINS: tuple[tuple[str, str, str], ...] = (
    ("stale-gradient", "exploding-gradient", "later"),
    ("stale-gradient", "nonfinite-gradient", "later"),
    ("stale-gradient", "nonfinite-loss", "later"),
    ("gradient-discarded", "step-without-gradient", "any"),
    ("gradient-discarded", "gradient-never-stepped", "any"),
    ("step-repeats-gradient", "gradient-discarded", "any"),
    ("step-repeats-gradient", "gradient-never-stepped", "any"),
    ("unregistered-parameter", "unowned-gradient", "shared"),
    ("unregistered-parameter", "stale-gradient", "shared"),
    ("stale-optimizer-parameters", "unowned-gradient", "any"),
    ("stale-optimizer-parameters", "owned-without-gradient", "any"),
    ("stale-optimizer-parameters", "step-without-gradient", "any"),
    ("backward-reaches-nothing", "owned-without-gradient", "any"),
    ("backward-reaches-nothing", "step-without-gradient", "any"),
    ("leaf-replaced", "stale-gradient", "any"),
    ("owned-without-gradient", "step-without-gradient", "any"),
    ("fp16-underflow", "dead-gradient", "any"),
    ("fp16-underflow", "step-changes-nothing", "any"),
    ("dead-gradient", "step-changes-nothing", "any"),
    ("dead-gradient", "vanishing-gradient", "any"),
    ("frozen-parameter-moves", "moves-without-gradient", "shared"),
    ("poisoned-gradient-kept", "nonfinite-gradient", "any"),
    ("poisoned-gradient-kept", "nonfinite-loss", "any"),
    ("poisoned-gradient-kept", "gradient-never-stepped", "any"),
    ("scaler-always-skips", "nonfinite-gradient", "any"),
    ("scaler-always-skips", "nonfinite-loss", "any"),
    ("scaler-never-updated", "stale-gradient", "any"),
    ("unscale-inside-window", "clip-before-unscale", "any"),
    ("unscale-inside-window", "unscaled-backward", "any"),
    ("validation-backward", "gradient-never-stepped", "any"),
    ("validation-backward", "accumulation-not-averaged", "any"),
    ("stale-optimizer-parameters", "dead-gradient", "any"),
    ("unowned-gradient", "dead-gradient", "any"),
    ("exploding-gradient", "nonfinite-gradient", "later"),
    ("exploding-gradient", "nonfinite-loss", "later"),
    ("accumulation-not-averaged", "exploding-gradient", "any"),
    ("accumulation-not-averaged", "nonfinite-gradient", "later"),
    ("accumulation-not-averaged", "nonfinite-loss", "later"),
    ("clip-covers-nothing", "exploding-gradient", "any"),
    ("clip-covers-nothing", "nonfinite-gradient", "later"),
    ("clip-covers-nothing", "nonfinite-loss", "later"),
    ("clip-covers-nothing", "torch-warning", "any"),
    ("clip-without-gradient", "torch-warning", "any"),
    ("clip-after-step", "exploding-gradient", "any"),
    ("clip-after-step", "nonfinite-gradient", "later"),
    ("clip-after-step", "nonfinite-loss", "later"),
    ("clip-after-step", "clip-always-active", "any"),
    ("clip-before-unscale", "clip-always-active", "any"),
    ("step-on-scaled-gradient", "exploding-gradient", "any"),
    ("step-on-scaled-gradient", "nonfinite-gradient", "later"),
    ("step-on-scaled-gradient", "nonfinite-loss", "later"),
    ("step-on-scaled-gradient", "scaler-never-updated", "any"),
    ("nonfinite-parameter", "nonfinite-gradient", "later"),
    ("nonfinite-parameter", "nonfinite-loss", "later"),
    ("nonfinite-loss", "nonfinite-gradient", "same or later"),
    ("nonfinite-gradient", "nonfinite-loss", "later"),
    ("nonfinite-gradient", "nonfinite-parameter", "later"),
    ("scheduler-before-optimizer", "torch-warning", "any"),
    ("learning-rate-vanished", "step-changes-nothing", "any"),
    ("freed-graph-reused", "gradient-never-stepped", "any"),
    ("inplace-modification", "gradient-never-stepped", "any"),
    ("validation-backward", "eval-mode-backward", "any"),
    ("irregular-window", "gradient-never-stepped", "any"),
    ("mixed-gradient", "gradient-never-stepped", "any"),
)
"""(cause, consequence, when): `later` than the cause's first sign, at the `same or later` event, sharing a parameter, or at any time."""


def fold(findings: Iterable[Finding]) -> list[Finding]:
    """The findings, consequences marked with the slug of their cause. Only what is as grave as the consequence explains it."""
    found = list(findings)
    by_rule: dict[tuple[int, str], list[Finding]] = {}
    for finding in found:
        if finding.status == "confirmed" and not finding.cause:
            by_rule.setdefault((finding.process, finding.rule), []).append(finding)
    return [msgspec.structs.replace(f, cause=cause) if (cause := _cause(f, by_rule)) else f for f in found]


def _cause(finding: Finding, by_rule: dict[tuple[int, str], list[Finding]]) -> str:
    for cause, consequence, when in EXPLAINS:
        if consequence != finding.rule:
            continue
        for candidate in by_rule.get((finding.process, cause), ()):
            if _as_grave(candidate, finding) and _fits(candidate, finding, when):
                return cause
    return finding.cause


def _as_grave(cause: Finding, consequence: Finding) -> bool:
    return cause.severity != "info" or consequence.severity == "info"


def _fits(cause: Finding, consequence: Finding, when: str) -> bool:
    began = cause.first.seq if cause.first else 0
    shown = consequence.first.seq if consequence.first else 0
    if when == "later":
        return shown > began
    if when == "same or later":
        return shown >= began
    if when == "shared":
        return not set(cause.parameters).isdisjoint(consequence.parameters)
    return True
