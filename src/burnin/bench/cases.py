"""What is measured: four multi-layer perceptrons, two image networks, two more samplers, two updates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from burnin.checked import nearest
from burnin.core import InputError
from burnin.energies import MLP, ConvNet

Kind = Literal["langevin", "mala", "hmc", "training"]
Size = Literal["small", "large", "image", "other"]

STEP_SIZE = 0.01
TEMPERATURE = 1.0
NUM_LEAPFROG = 5
ARM_WEIGHTS = {"noise": 1.0, "data": 25.0}
TRAINING = {10: ("rings10", 100), 2: ("mixture8-unequal", 20)}
"""What an update learns from, by dimensions, and the Langevin steps of each arm in it."""
BETA = 0.1
LEARNING_RATE = 1e-4
SEEDS = {"weights": 0, "start": 1, "chains": 2}


@dataclass(frozen=True)
class Case:
    """One thing to measure.

    Attributes:
        name: what `--sizes` calls it.
        kind: which sampler, or one whole training update.
        size: which of the requirements hold for it.
        chains: how many chains.
        shape: of one chain's position; three numbers make the network a ConvNet.
        width: hidden units, or channels after the first convolution.
        depth: hidden layers; 0 for a ConvNet, whose depth follows from the image.
    """

    name: str
    kind: Kind
    size: Size
    chains: int
    shape: tuple[int, ...]
    width: int
    depth: int = 0

    @property
    def title(self) -> str:
        """What tables call it: chains × inputs, hidden × layers."""
        net = f"{self.width}×{self.depth}" if self.depth else f"ConvNet {self.width}"
        text = f"{self.chains}×{'×'.join(map(str, self.shape))}, {net}"
        before = {"langevin": "", "mala": "MALA, ", "hmc": "HMC, ", "training": "hybrid update, "}
        return before[self.kind] + text

    @property
    def density(self) -> str:
        """What an update learns from."""
        return TRAINING[self.shape[0]][0]

    @property
    def arm_steps(self) -> int:
        """Langevin steps of each arm in one update."""
        return TRAINING[self.shape[0]][1]

    @property
    def least_steps(self) -> int:
        """Steps are counted in these: compiled chains take several steps in one graph."""
        return 1 if self.kind == "training" else 10


CASES = (
    Case("mlp-100x2", "langevin", "small", 100, (2,), 64, 3),
    Case("mlp-128x10", "langevin", "small", 128, (10,), 128, 3),
    Case("mlp-1024x10", "langevin", "large", 1024, (10,), 256, 3),
    Case("mlp-128x784", "langevin", "large", 128, (784,), 1000, 2),
    Case("conv-28", "langevin", "image", 64, (1, 28, 28), 16),
    Case("conv-32", "langevin", "image", 64, (3, 32, 32), 16),
    Case("mala", "mala", "other", 128, (10,), 128, 3),
    Case("hmc", "hmc", "other", 128, (10,), 128, 3),
    Case("training", "training", "other", 128, (10,), 128, 3),
    Case("training-toy", "training", "other", 100, (2,), 64, 3),
)


def choose_cases(names: Sequence[str]) -> tuple[Case, ...]:
    """The cases of these names, in the order of `CASES`; all for none.

    Example:
        >>> [case.title for case in choose_cases(["training", "mlp-100x2"])]
        ['100×2, 64×3', 'hybrid update, 128×10, 128×3']
    """
    known = [case.name for case in CASES]
    for name in names:
        if name not in known:
            raise InputError(f"there is no size {name!r}{nearest(name, known)}; known: {', '.join(known)}")
    return tuple(case for case in CASES if not names or case.name in names)


def make_energy(case: Case) -> nn.Module:
    """The case's network; the same weights for every contestant."""
    stream = torch.Generator().manual_seed(SEEDS["weights"])
    if case.depth:
        return MLP(case.shape[0], width=case.width, depth=case.depth, generator=stream)
    channels, height, width = case.shape
    return ConvNet((channels, height, width), width=case.width, generator=stream)


def make_default_energy(case: Case) -> nn.Module:
    """The same network in the layout that torch gives by default: what a script of one's own has."""
    return make_energy(case).to(memory_format=torch.contiguous_format)  # type: ignore[call-overload, no-any-return]


def make_start(case: Case) -> Tensor:
    """Where every contestant's chains begin, in each repeat anew."""
    return torch.randn(case.chains, *case.shape, generator=torch.Generator().manual_seed(SEEDS["start"]))
