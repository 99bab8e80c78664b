"""Every rule on what the probe saw of small real programs: the fault is told, its twin and every correct program are left alone."""

from __future__ import annotations

from functools import cache

import pytest

from gradtui.rules import Finding
from gradtui.rules.judge import Judge
from tests.rules.programs.faults import FAULTS
from tests.rules.programs.innocents import INNOCENTS
from tests.rules.programs.record import Recording, load, programs

_NOT_YET = {"hook_scales_parameter"}
"""The probe does not tell yet that a hook changed a parameter inside a backward."""


@cache
def recordings() -> dict[str, Recording]:
    return load()


def judged(name: str) -> list[Finding]:
    """Confirmed findings on one program that no other explains."""
    exit_code, events = recordings()[name]
    judge = Judge(read=lambda path: programs()[name])
    for event in events:
        judge.feed(event)
    return [finding for finding in judge.finish(exit_code) if finding.status == "confirmed" and not finding.cause]


def loud(name: str) -> set[str]:
    return {finding.rule for finding in judged(name) if finding.severity != "info"}


@pytest.mark.parametrize("name", sorted(INNOCENTS))
def test_a_correct_program_is_not_called_wrong(name):
    assert loud(f"right/{name}") == set()


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_mended_program_is_not_called_wrong(name):
    assert loud(f"twin/{name}") == set()


@pytest.mark.parametrize("name", sorted(set(FAULTS) - _NOT_YET))
def test_a_fault_is_told_once_with_its_parameters(name):
    faulty = FAULTS[name]
    found = [finding for finding in judged(f"fault/{name}") if finding.rule in faulty.rules]
    assert found, loud(f"fault/{name}")
    assert loud(f"fault/{name}") <= faulty.rules
    if faulty.parameters is not None:
        assert set(found[0].parameters) == faulty.parameters
