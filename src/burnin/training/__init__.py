"""Training: arms, the trainer, its guard, its checkpoints and its folder."""

from burnin.training.arms import Arm
from burnin.training.checkpoint import Snapshot, load_checkpoint, save_checkpoint
from burnin.training.folder import RunFolder, read_metrics
from burnin.training.guard import Guard, GuardSettings
from burnin.training.parts import Parts
from burnin.training.scale import FisherScale
from burnin.training.trainer import Trainer

__all__ = [
    "Arm",
    "FisherScale",
    "Guard",
    "GuardSettings",
    "Parts",
    "RunFolder",
    "Snapshot",
    "Trainer",
    "load_checkpoint",
    "read_metrics",
    "save_checkpoint",
]
