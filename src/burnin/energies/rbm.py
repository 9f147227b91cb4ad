"""The Gaussian-Bernoulli restricted Boltzmann machine: an energy with a known score and a Gibbs sampler."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from burnin.core import InputError

MOST_SUMMED = 16
"""Hidden units up to which their 2^k states are summed for the normaliser."""
SWEEPS = 150
"""Of a draw. In the machines of the paper's tests each draw has then settled in a mode; the right masses of
modes take longer, and no score can tell them."""
COOLING = 0.5
"""Share of the sweeps that cool; the others are at the machine's own temperature."""
HOT = 0.3
"""Strength of a unit's couplings, in nats, at the first sweep: units hardly feel each other."""


class GaussianBernoulliRBM(nn.Module):
    """Visible x, hidden h in {-1, +1}, and one temperature T (stein, section 7.1):

        p(x, h) ∝ exp(κ xᵀB h + bᵀx + cᵀh - ½‖x‖²),   κ = ½

    With the hidden units summed out, y = κ Bᵀx + c,

        E(x) = T (½‖x‖² - bᵀx - Σⱼ log 2 cosh yⱼ),   ∇ log p(x) = b - x + κ B tanh(y).

    The paper prints the score without the two halves, as κ = 1 would give it; its joint density, its
    program and kernel-gof have κ = ½. `coupling` is κ.

    Many machines are one: with leading axes on every parameter, (k, dim, hidden), energies and scores of
    points (k, n, dim) and draws are those of k machines at once, for power studies.

    Arguments:
        weights: B, (..., dim, hidden).
        visible_bias: b, (..., dim).
        hidden_bias: c, (..., hidden).
        coupling: κ.
        temperature: T; the density at T is the same whatever it is.
        learned: whether the parameters are trained.
        sweeps: of annealed Gibbs sampling before a draw.

    Example:
        >>> import torch
        >>> rbm = GaussianBernoulliRBM.random(4, 3, torch.Generator().manual_seed(0))
        >>> x = rbm.sample(2, torch.Generator().manual_seed(1))
        >>> rbm(x).shape, rbm.score(x).shape
        (torch.Size([2]), torch.Size([2, 4]))
    """

    weights: Tensor
    visible_bias: Tensor
    hidden_bias: Tensor

    def __init__(
        self,
        weights: Tensor,
        visible_bias: Tensor,
        hidden_bias: Tensor,
        *,
        coupling: float = 0.5,
        temperature: float = 1.0,
        learned: bool = False,
        sweeps: int = SWEEPS,
    ) -> None:
        super().__init__()
        *batch, dim, hidden = weights.shape
        if visible_bias.shape != (*batch, dim) or hidden_bias.shape != (*batch, hidden):
            raise InputError(
                f"weights of shape {tuple(weights.shape)} go with biases of {(*batch, dim)} and "
                f"{(*batch, hidden)}; got {tuple(visible_bias.shape)} and {tuple(hidden_bias.shape)}"
            )
        if not temperature > 0 or sweeps < 1:
            raise InputError(f"temperature is {temperature} and sweeps {sweeps}; wanted above 0, at least 1")
        self.coupling, self.temperature, self.sweeps = coupling, temperature, sweeps
        named = {"weights": weights, "visible_bias": visible_bias, "hidden_bias": hidden_bias}
        for name, value in named.items():
            if learned:
                self.register_parameter(name, nn.Parameter(value.detach().clone()))
            else:
                self.register_buffer(name, value.detach().clone())

    @classmethod
    def random(
        cls,
        dim: int,
        hidden: int,
        generator: torch.Generator,
        *,
        machines: int | None = None,
        temperature: float = 1.0,
        sweeps: int = SWEEPS,
    ) -> GaussianBernoulliRBM:
        """As the paper's tests have it (B.1): B uniform in {-1, +1}, b and c standard normal.

        Arguments:
            dim: visible units.
            hidden: hidden units.
            generator: draws the parameters.
            machines: how many at once; None for one without a leading axis.
            temperature: T.
            sweeps: of annealed Gibbs sampling before a draw.
        """
        batch = () if machines is None else (machines,)
        device = generator.device
        coins = torch.randint(2, (*batch, dim, hidden), generator=generator, device=device)
        return cls(
            (2 * coins - 1).to(torch.get_default_dtype()),
            torch.randn(*batch, dim, generator=generator, device=device),
            torch.randn(*batch, hidden, generator=generator, device=device),
            temperature=temperature,
            sweeps=sweeps,
        )

    @property
    def dim(self) -> int:
        """Number of visible units."""
        return self.weights.shape[-2]

    def forward(self, x: Tensor) -> Tensor:
        """E(x): (n,), or (k, n) of k machines."""
        y = self._field(x)
        linear = (x * self.visible_bias.unsqueeze(-2)).sum(-1)
        # log 2cosh y; the second derivative of logaddexp(y, -y) is NaN where |y| is above 44.
        summed = (y - nn.functional.logsigmoid(2 * y)).sum(-1)
        return self.temperature * (0.5 * x.square().sum(-1) - linear - summed)

    def score(self, x: Tensor) -> Tensor:
        """∇ log p(x) = b - x + κ B tanh(κ Bᵀx + c), of the shape of x."""
        pull = torch.tanh(self._field(x)) @ self.weights.mT
        return self.visible_bias.unsqueeze(-2) - x + self.coupling * pull

    def energy_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """E(x) and ∇E(x) = -T ∇ log p(x), without a graph."""
        with torch.no_grad():
            return self(x), -self.temperature * self.score(x)

    def log_normaliser(self) -> Tensor:
        """log ∫ exp(-E/T), by the sum over all states of the hidden units, of which there may be 16.

        Given h, x is N(b + κ B h, I), so Z = (2π)^{dim/2} Σ_h exp(cᵀh + ½‖b + κ B h‖²).
        """
        hidden = self.weights.shape[-1]
        if hidden > MOST_SUMMED:
            raise InputError(
                f"the normaliser of {hidden} hidden units has 2^{hidden} terms; at most {MOST_SUMMED} units "
                "are summed, so use an objective that does not need it"
            )
        state = torch.cartesian_prod(*[self.weights.new_tensor([-1.0, 1.0])] * hidden).reshape(-1, hidden)
        centre = self.visible_bias.unsqueeze(-2) + self.coupling * state @ self.weights.mT
        terms = (state * self.hidden_bias.unsqueeze(-2)).sum(-1) + 0.5 * centre.square().sum(-1)
        return torch.logsumexp(terms, -1) + 0.5 * self.dim * math.log(2 * math.pi)

    def perturbed(self, sd: float, generator: torch.Generator) -> GaussianBernoulliRBM:
        """The machine with Gaussian noise of standard deviation `sd` on B: the tests' alternative."""
        weights = self.weights.detach()
        noise = torch.randn(weights.shape, generator=generator, dtype=weights.dtype, device=weights.device)
        return self._with(weights + sd * noise, self.visible_bias, self.hidden_bias)

    def machine(self, index: int) -> GaussianBernoulliRBM:
        """One of many."""
        return self._with(self.weights[index], self.visible_bias[index], self.hidden_bias[index])

    @torch.no_grad()
    def gibbs(self, x: Tensor, num_steps: int, generator: torch.Generator) -> Tensor:
        """`num_steps` times h given x, then x given h, for every row.

        P(hⱼ = 1 | x) = sigmoid(2 yⱼ), and x given h is N(b + κ B h, I). Where there are fewer hidden units
        than visible ones, x is drawn in the last step only: in between y given h is drawn itself,

            y = κ Bᵀb + c + κ² BᵀB h + κ (BᵀB)^½ z,   z ~ N(0, I),

        which is the law of κ Bᵀx + c for that x. One product, and fewer draws, for the same chain of h.
        """
        if num_steps < 1:
            return x
        hidden = self.weights.shape[-1]
        if hidden < self.dim:
            state = self._hidden_after(x, num_steps, generator)
            return self._visible(state, generator)
        for _ in range(num_steps):
            x = self._visible(_signs(self._field(x), generator), generator)
        return x

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """n independent draws, (..., n, dim): hidden units by `anneal`, then x given h."""
        if n < 0:
            raise InputError(f"GaussianBernoulliRBM: n is {n}; it must be at least 0")
        return self._visible(self.anneal(n, self.sweeps, generator), generator)

    @torch.no_grad()
    def anneal(self, n: int, sweeps: int, generator: torch.Generator) -> Tensor:
        """n states of the hidden units after sweeps of annealed Gibbs sampling, (..., n, hidden).

        With x integrated out, the hidden units are an Ising model,

            p(h) ∝ exp(½ hᵀJh + fᵀh),   J = κ² BᵀB without its diagonal,   f = κ Bᵀb + c,

        and a sweep draws each unit given all others, P(hⱼ = 1) = sigmoid(2β (Jh + f)ⱼ), with β rising to 1
        from where units hardly feel each other. `gibbs`, which draws all h given x and then x given h, has
        the same law in the end and hardly ever gets there: what a unit does to x holds it in place.
        """
        gram = self.coupling**2 * self.weights.mT @ self.weights
        diagonal = torch.diagonal(gram, dim1=-2, dim2=-1)
        couplings = gram - torch.diag_embed(diagonal)
        field = self._field(self.visible_bias.unsqueeze(-2)).mT
        strength = (couplings.square().sum(-1) + field.squeeze(-1).square()).mean().sqrt().item()
        coolings = [
            min(1.0, HOT / max(strength, HOT)) ** (1 - min(1.0, k / (COOLING * sweeps)))
            for k in range(sweeps)
        ]
        shape = (*field.shape[:-1], n)
        # Units first, so that what a step reads and writes of one unit is in one piece.
        state = torch.zeros(shape, dtype=gram.dtype, device=gram.device)
        local = field.expand(shape).clone()
        for beta in coolings:
            uniform = torch.rand(shape, generator=generator, dtype=gram.dtype, device=gram.device)
            threshold = torch.logit(uniform) / (2 * beta)
            for unit in range(shape[-2]):
                new = torch.where(local[..., unit, :] > threshold[..., unit, :], 1.0, -1.0)
                change = (new - state[..., unit, :]).unsqueeze(-2)
                state[..., unit, :] = new
                local.addcmul_(couplings[..., unit : unit + 1].expand(shape), change.expand(shape))
        return state.mT.contiguous()

    def _field(self, x: Tensor) -> Tensor:
        return self.coupling * x @ self.weights + self.hidden_bias.unsqueeze(-2)

    def _visible(self, state: Tensor, generator: torch.Generator) -> Tensor:
        """A draw of x given h."""
        centre = self.visible_bias.unsqueeze(-2) + self.coupling * state @ self.weights.mT
        return centre + torch.randn(
            centre.shape, generator=generator, dtype=centre.dtype, device=centre.device
        )

    def _hidden_after(self, x: Tensor, num_steps: int, generator: torch.Generator) -> Tensor:
        """h in the last of `num_steps` steps from x, without any x in between."""
        gram = self.weights.mT @ self.weights
        # From eigenvalues, as columns of ±1 may coincide: then there is no Cholesky factor.
        values, vectors = torch.linalg.eigh(gram.double())
        root = (vectors * values.clamp_min(0).sqrt().unsqueeze(-2)) @ vectors.mT
        mixing = torch.cat([self.coupling**2 * gram, self.coupling * root.to(gram.dtype)], dim=-2)
        centre = self._field(self.visible_bias.unsqueeze(-2))
        state = _signs(self._field(x), generator)
        both = torch.cat([state, torch.empty_like(state)], dim=-1)
        hidden = state.shape[-1]
        for _ in range(num_steps - 1):
            both[..., hidden:] = torch.randn(
                state.shape, generator=generator, dtype=state.dtype, device=state.device
            )
            both[..., :hidden] = _signs(both @ mixing + centre, generator)
        return both[..., :hidden]

    def _with(self, weights: Tensor, visible: Tensor, hidden: Tensor) -> GaussianBernoulliRBM:
        return GaussianBernoulliRBM(
            weights,
            visible,
            hidden,
            coupling=self.coupling,
            temperature=self.temperature,
            learned=isinstance(self.weights, nn.Parameter),
            sweeps=self.sweeps,
        )


def _signs(field: Tensor, generator: torch.Generator) -> Tensor:
    """A draw of h given y: +1 with probability sigmoid(2y), else -1."""
    uniform = torch.rand(field.shape, generator=generator, dtype=field.dtype, device=field.device)
    return 2.0 * (uniform < torch.sigmoid(2 * field)).to(field.dtype) - 1.0
