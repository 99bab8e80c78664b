"""What a person may set about the diagnosis: which rules, and the figures they judge by, each with its source."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Figures that rules judge by. A setting in `[tool.gradtui]` of the same name replaces one."""

    first_windows: int = 3
    """Steps after which a parameter that never received anything is called forgotten (`owned-without-gradient`)."""
    major_share: float = 0.5
    """Share of the model's squared gradient norm above which `unowned-gradient` is an error."""
    average_tolerance: float = 1.5
    """`accumulation-not-averaged` is quiet when the losses were divided by N within this factor either way."""
    regular_windows: int = 2
    """Equal accumulation windows in a row that make a regular start (`irregular-window`)."""
    always_clipped: int = 50
    """Clips, all of them active, before `clip-always-active` speaks. Pascanu et al. 2013 (arXiv:1211.5063) suggest a threshold
    of half to ten times the average norm, so a median shrink above `clip_shrink` means a threshold far below that."""
    clip_shrink: float = 10.0
    scaler_skips: int = 8
    """Skips in a row that calibration does not explain: GradScaler starts at 2^16 and halves, so 2^16 → 2^8 takes eight."""
    tiny_share: float = 0.5
    """Share of a half-precision gradient that is zero or subnormal (Micikevicius et al. 2018, arXiv:1710.03740, lose half)."""
    explosion_history: float = 1e3
    """Total norm over the median of the backwards before it."""
    explosion_scale: float = 1e4
    """Total gradient norm over what is ordinary at a first backward (a norm of about one for a mean loss of order one)."""
    vanishing_ratio: float = 1e-6
    """Early over late gradient norm per parameter, below which depth has taken the gradient away."""
    dead_backwards: int = 8
    """Backwards with an exactly zero gradient that make a parameter dead."""
    update_low: float = 1e-5
    update_high: float = 1e-1
    """Ordinary range of update norm over weight norm (Karpathy's rule of thumb is 1e-3, within two orders)."""
    update_steps: int = 20
    """Steps out of range in a row before `update-ratio` speaks."""
    same_gradient: int = 5
    """Identical contributions in a row from one line (`same-gradient-again`)."""
    vanished_rate: float = 1e-6
    """Learning rate over its largest value so far that counts as vanished."""
    vanished_steps: int = 10
    """Steps in a row at such a rate."""
    eval_backwards: int = 2
    """Backwards in eval mode, all consumed, after training had begun in train mode."""


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """Which rules run, and by what figures."""

    select: tuple[str, ...] = ()
    """Only these (names or patterns such as `clip-*`); empty: all."""
    ignore: tuple[str, ...] = ()
    thresholds: Thresholds = field(default_factory=Thresholds)

    def allows(self, slug: str) -> bool:
        """Findings of this rule are wanted."""
        if any(fnmatchcase(slug, pattern) for pattern in self.ignore):
            return False
        return not self.select or any(fnmatchcase(slug, pattern) for pattern in self.select)


def thresholds_from(table: dict[str, object]) -> Thresholds:
    """Thresholds with a person's own figures. Raises ValueError on a name or a value that is none."""
    known = {item.name: item for item in dataclasses.fields(Thresholds)}
    values: dict[str, float] = {}
    for name, value in table.items():
        name = name.replace("-", "_")
        if name not in known:
            raise ValueError(f"there is no threshold {name!r}; known are {', '.join(sorted(known))}")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(f"threshold {name!r} must be a number, not {value!r}")
        values[name] = value
    return dataclasses.replace(Thresholds(), **values)  # type: ignore[arg-type]
