"""What can be wrong with gradients: one file a rule, listed in the order shown to people."""

from __future__ import annotations

from gradtui.rules.accumulation_not_averaged import AccumulationNotAveraged
from gradtui.rules.accumulation_weighting import AccumulationWeighting
from gradtui.rules.backward_reaches_nothing import BackwardReachesNothing
from gradtui.rules.clip_after_step import ClipAfterStep
from gradtui.rules.clip_always_active import ClipAlwaysActive
from gradtui.rules.clip_before_unscale import ClipBeforeUnscale
from gradtui.rules.clip_covers_nothing import ClipCoversNothing
from gradtui.rules.clip_inside_window import ClipInsideWindow
from gradtui.rules.clip_partial import ClipPartial
from gradtui.rules.clip_without_gradient import ClipWithoutGradient
from gradtui.rules.dead_gradient import DeadGradient
from gradtui.rules.decayed_gradient import DecayedGradient
from gradtui.rules.eval_mode_backward import EvalModeBackward
from gradtui.rules.exploding_gradient import ExplodingGradient
from gradtui.rules.finding import Evidence, Finding, First, Severity, Site, Status
from gradtui.rules.fp16_underflow import Fp16Underflow
from gradtui.rules.freed_graph_reused import FreedGraphReused
from gradtui.rules.frozen_parameter_moves import FrozenParameterMoves
from gradtui.rules.gradient_alias_kept import GradientAliasKept
from gradtui.rules.gradient_discarded import GradientDiscarded
from gradtui.rules.gradient_never_stepped import GradientNeverStepped
from gradtui.rules.gradient_wasted import GradientWasted
from gradtui.rules.graph_retained import GraphRetained
from gradtui.rules.inplace_modification import InplaceModification
from gradtui.rules.irregular_window import IrregularWindow
from gradtui.rules.leaf_replaced import LeafReplaced
from gradtui.rules.learning_rate_vanished import LearningRateVanished
from gradtui.rules.mixed_gradient import MixedGradient
from gradtui.rules.moves_without_gradient import MovesWithoutGradient
from gradtui.rules.nonfinite_gradient import NonfiniteGradient
from gradtui.rules.nonfinite_loss import NonfiniteLoss
from gradtui.rules.nonfinite_parameter import NonfiniteParameter
from gradtui.rules.owned_without_gradient import OwnedWithoutGradient
from gradtui.rules.parameter_changed_in_backward import ParameterChangedInBackward
from gradtui.rules.poisoned_gradient_kept import PoisonedGradientKept
from gradtui.rules.rank_behind import RankBehind
from gradtui.rules.replicas_diverge import ReplicasDiverge
from gradtui.rules.rule import Ending, Rule
from gradtui.rules.same_gradient_again import SameGradientAgain
from gradtui.rules.scaler_always_skips import ScalerAlwaysSkips
from gradtui.rules.scaler_never_updated import ScalerNeverUpdated
from gradtui.rules.scheduler_before_optimizer import SchedulerBeforeOptimizer
from gradtui.rules.settings import JudgeSettings, Thresholds, thresholds_from
from gradtui.rules.stale_gradient import StaleGradient
from gradtui.rules.stale_optimizer_parameters import StaleOptimizerParameters
from gradtui.rules.step_changes_nothing import StepChangesNothing
from gradtui.rules.step_on_scaled_gradient import StepOnScaledGradient
from gradtui.rules.step_repeats_gradient import StepRepeatsGradient
from gradtui.rules.step_without_gradient import StepWithoutGradient
from gradtui.rules.torch_warning import TorchWarning
from gradtui.rules.unowned_gradient import UnownedGradient
from gradtui.rules.unregistered_parameter import UnregisteredParameter
from gradtui.rules.unscale_inside_window import UnscaleInsideWindow
from gradtui.rules.unscaled_backward import UnscaledBackward
from gradtui.rules.unsupported_gradient import UnsupportedGradient
from gradtui.rules.unsynced_step import UnsyncedStep
from gradtui.rules.update_ratio import UpdateRatio
from gradtui.rules.validation_backward import ValidationBackward
from gradtui.rules.vanishing_gradient import VanishingGradient

RULES: tuple[type[Rule], ...] = (
    # the life cycle of a gradient
    StaleGradient,
    GradientDiscarded,
    StepWithoutGradient,
    StepRepeatsGradient,
    GradientNeverStepped,
    MixedGradient,
    ValidationBackward,
    GradientWasted,
    DecayedGradient,
    GradientAliasKept,
    LeafReplaced,
    ParameterChangedInBackward,
    PoisonedGradientKept,
    # accumulation windows
    AccumulationNotAveraged,
    AccumulationWeighting,
    IrregularWindow,
    ClipInsideWindow,
    # clipping
    ClipBeforeUnscale,
    ClipAfterStep,
    ClipWithoutGradient,
    ClipCoversNothing,
    ClipPartial,
    ClipAlwaysActive,
    # mixed precision
    StepOnScaledGradient,
    ScalerNeverUpdated,
    UnscaleInsideWindow,
    UnscaledBackward,
    ScalerAlwaysSkips,
    Fp16Underflow,
    # who owns what
    UnownedGradient,
    StaleOptimizerParameters,
    OwnedWithoutGradient,
    UnregisteredParameter,
    BackwardReachesNothing,
    FrozenParameterMoves,
    MovesWithoutGradient,
    StepChangesNothing,
    # the health of the numbers
    NonfiniteGradient,
    NonfiniteLoss,
    ExplodingGradient,
    VanishingGradient,
    DeadGradient,
    NonfiniteParameter,
    UpdateRatio,
    SameGradientAgain,
    # graph, mode, order
    GraphRetained,
    FreedGraphReused,
    InplaceModification,
    EvalModeBackward,
    SchedulerBeforeOptimizer,
    LearningRateVanished,
    UnsupportedGradient,
    TorchWarning,
    # several processes
    ReplicasDiverge,
    UnsyncedStep,
    RankBehind,
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
