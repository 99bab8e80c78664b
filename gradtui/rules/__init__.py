"""What can be wrong with gradients: one file a rule, listed in the order shown to people."""

from __future__ import annotations

from gradtui.rules.decayed_gradient import DecayedGradient
from gradtui.rules.finding import Evidence, Finding, First, Severity, Site, Status
from gradtui.rules.gradient_discarded import GradientDiscarded
from gradtui.rules.gradient_never_stepped import GradientNeverStepped
from gradtui.rules.gradient_wasted import GradientWasted
from gradtui.rules.nonfinite_gradient import NonfiniteGradient
from gradtui.rules.nonfinite_loss import NonfiniteLoss
from gradtui.rules.owned_without_gradient import OwnedWithoutGradient
from gradtui.rules.rule import Ending, Rule
from gradtui.rules.settings import JudgeSettings, Thresholds, thresholds_from
from gradtui.rules.stale_gradient import StaleGradient
from gradtui.rules.step_repeats_gradient import StepRepeatsGradient
from gradtui.rules.step_without_gradient import StepWithoutGradient
from gradtui.rules.unowned_gradient import UnownedGradient

RULES: tuple[type[Rule], ...] = (
    StaleGradient,
    GradientDiscarded,
    StepWithoutGradient,
    StepRepeatsGradient,
    GradientNeverStepped,
    GradientWasted,
    DecayedGradient,
    UnownedGradient,
    OwnedWithoutGradient,
    NonfiniteGradient,
    NonfiniteLoss,
)

BY_SLUG: dict[str, type[Rule]] = {rule.slug: rule for rule in RULES}

__all__ = [
    "BY_SLUG",
    "RULES",
    "Ending",
    "Evidence",
    "Finding",
    "First",
    "JudgeSettings",
    "Rule",
    "Severity",
    "Site",
    "Status",
    "Thresholds",
    "thresholds_from",
]
