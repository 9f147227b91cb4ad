"""Notices when a β-weighted contrast has nothing left to learn from (robust, appendix H)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

OUT_OF_THE_GAME = 0.01
PATIENCE = 200


@dataclass
class NegativesWatch:
    """Warns, once an arm, when its negatives have carried next to no weight for many updates in a row.

    Then the data alone fills the contrast: updates are scaled by grad_scale ≈ 0, and an optimiser that
    adapts its rate (Adam, RMSprop) blows what is left up again, so training drifts.

    Example:
        >>> watch = NegativesWatch(patience=2)
        >>> [watch.look(update, {"grad_scale/noise": 0.001}) is None for update in (1, 2, 3)]
        [True, False, True]
    """

    threshold: float = OUT_OF_THE_GAME
    patience: int = PATIENCE
    streaks: dict[str, int] = field(default_factory=dict)

    def look(self, update: int, numbers: Mapping[str, float]) -> str | None:
        """The warning, where one is due."""
        for name, value in numbers.items():
            if not name.startswith("grad_scale/"):
                continue
            arm = name.removeprefix("grad_scale/")
            self.streaks[arm] = self.streaks.get(arm, 0) + 1 if value < self.threshold else 0
            if self.streaks[arm] == self.patience:
                return (
                    f"update {update}: the negatives of arm {arm!r} have been out of the game for "
                    f"{self.patience} updates (grad_scale {value:.2g}): lower beta, take more steps "
                    "(num_steps) or chains (num_chains), or start nearer to the data"
                )
        return None
