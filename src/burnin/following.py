"""Chains that follow a network while it is trained without any: d, r and acceptance to look at meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import torch

from burnin.assemble_chains import build_sampler
from burnin.evaluation import MixtureBase
from burnin.rng import Streams
from burnin.samplers import Engine, run
from burnin.settings import Config
from burnin.training import Trainer
from burnin.training.parts import Metrics
from burnin.watching import LOOK_EVERY

OnUpdate = Callable[[int, Metrics], None]
CHAINS = 64
STEPS = 10
"""At every look; chains go on from where they were."""


def followed(
    trainer: Trainer, base: MixtureBase, config: Config, on_update: OnUpdate | None
) -> OnUpdate | None:
    """What is told after each update: its numbers, and those of chains that follow, anew at every look."""
    if on_update is None:
        return None
    chains, seen = FollowingChains(trainer, base, config), dict[str, float]()

    def update(step: int, numbers: Metrics) -> None:
        if not seen or step % LOOK_EVERY == 0:
            seen.update(chains.look())
        on_update(step, {**numbers, **seen})

    return update


class FollowingChains:
    """Chains from draws of the base that go on, some steps at every look, with the energy as it then is.

    They have streams of their own, so that nothing else depends on whether somebody looks.
    """

    def __init__(self, trainer: Trainer, base: MixtureBase, config: Config) -> None:
        self._trainer, self._scale = trainer, trainer.parts.scale
        self._stream = Streams(config.run.seed)["following"]
        self._sampler = build_sampler(config.sampler, config.model.temperature)
        self._position = base.sample(CHAINS, self._stream)
        # Not the trainer's, which counts on more steps than these few and might compile for them.
        self._engine = Engine(config.run.compile, threads=trainer.engine.threads)

    def look(self) -> Metrics:
        """d = ⟨E(data)⟩ - ⟨E(chains)⟩, r = ⟨‖∇E‖⟩ along the steps, acceptance and step size."""
        energy = self._trainer.model
        scale = None if self._scale is None else self._scale.value()
        state = self._sampler.init(energy, self._position, scale=scale)
        result = run(
            self._sampler,
            energy,
            state,
            num_steps=STEPS,
            generator=self._stream,
            engine=self._engine,
        )
        self._position = result.state.position
        with torch.no_grad():
            data = energy(self._trainer.parts.data.sample(CHAINS, self._stream)).mean().item()
            chains = energy(self._position).mean().item()
        return {
            "d/chains": data - chains,
            "r/chains": result.gradient_norm,
            "acceptance/chains": result.acceptance,
            "step_size/chains": float(result.state.step_size),
        }
