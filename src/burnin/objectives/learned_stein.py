"""The learned Stein discrepancy as an objective: a critic looks for where model and data differ."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from burnin.closed_form import closed_form
from burnin.core import Energy
from burnin.objectives.direct import DirectObjective, Draw, require_above_zero
from burnin.stein import Trace, combine, critic_objective, score_of, value_and_trace


class LearnedStein(DirectObjective):
    """Minimises ⟨s·f + Tr ∇f⟩_data over the energy, s = -∇E/T, against a critic f that maximises

        ⟨s·f + Tr ∇f⟩_data - λ ⟨f·f⟩_data                          (stein, section 6, Algorithm 3)

    in `critic_steps` steps on fresh batches before each update of the energy. With the best critic
    f = (s - s_data)/2λ (equation 9) the discrepancy is E ‖s - s_data‖² / 2λ and the critic's own value half
    of that, the Fisher divergence over 4λ, whose gradient the energy follows. The energy needs only first
    derivatives with respect to its input, unlike score matching.

    Arguments:
        critic: f, from points to vectors of the same shape.
        temperature: T.
        lam: λ of the critic's penalty; the critic's size goes as 1/λ, its direction stays.
        critic_steps: steps of the critic for each update of the energy.
        learning_rate: of the critic's Adam, at first; it falls as the energy's does.
        betas: of the critic's Adam; (0.5, 0.9) in the paper.
        trace: how Tr ∇f is computed; "gaussian" is the paper's estimator, "exact" its mean.

    Example:
        >>> from burnin.stein import mlp_critic
        >>> generator = torch.Generator().manual_seed(0)
        >>> stein = LearnedStein(mlp_critic(2, 16, generator=generator), temperature=1.0)
        >>> energy = lambda x: 0.5 * x.square().sum(1)
        >>> draw = lambda: 2 + torch.randn(100, 2, generator=generator)
        >>> for _ in range(20):
        ...     stein.before_update(energy, draw, generator)
        >>> stein.loss(energy, draw(), generator)[0].item() > 0  # the data is not at 0
        True
    """

    def __init__(
        self,
        critic: nn.Module,
        *,
        temperature: float,
        lam: float = 10.0,
        critic_steps: int = 5,
        learning_rate: float = 1e-3,
        betas: tuple[float, float] = (0.5, 0.9),
        trace: Trace = "exact",
    ) -> None:
        super().__init__(temperature)
        require_above_zero("lsd", lam=lam, critic_steps=critic_steps, learning_rate=learning_rate)
        self.critic = critic
        self.lam, self.critic_steps = lam, critic_steps
        self.trace: Trace = trace
        group = {"params": list(critic.parameters()), "initial_lr": learning_rate}
        self._optimizer = torch.optim.Adam([group], lr=learning_rate, betas=betas, fused=True)

    def optimizers(self) -> Mapping[str, torch.optim.Optimizer]:
        """The critic's."""
        return {"critic": self._optimizer}

    def before_update(self, energy: Energy, draw: Draw, generator: torch.Generator) -> None:
        """The critic's steps, each on a batch of its own."""
        score = score_of(closed_form(energy) or energy, self.temperature)
        for _ in range(self.critic_steps):
            x = draw()
            self._optimizer.zero_grad(set_to_none=True)
            reached = critic_objective(
                score(x), self.critic, x, lam=self.lam, trace=self.trace, generator=generator
            )
            (-reached).backward()  # type: ignore[no-untyped-call]
            self._optimizer.step()

    def loss(
        self, energy: Energy, data: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, float]]:
        """The Stein discrepancy by the critic; the critic's mean square and the score's size."""
        with torch.no_grad():
            value, trace = value_and_trace(self.critic, data, trace=self.trace, generator=generator)
        score = score_of(energy, self.temperature, create_graph=True)(data)
        loss = combine(score, value, trace).mean()
        numbers = {
            "critic": value.square().flatten(1).sum(1).mean().item(),
            "score": score.detach().square().flatten(1).sum(1).mean().sqrt().item(),
        }
        return loss, numbers
