"""Stein's operator and its critics, for tests, for rankings and for training without chains."""

from burnin.stein.convolution import PictureCritic
from burnin.stein.operator import (
    Critic,
    HasTrace,
    Score,
    Trace,
    combine,
    critic_objective,
    l2_penalty,
    probes_like,
    score_of,
    stein_terms,
    value_and_trace,
)
from burnin.stein.perceptron import Activation, MLPCritic, Thinned, mlp_critic

__all__ = [
    "Activation",
    "Critic",
    "HasTrace",
    "MLPCritic",
    "PictureCritic",
    "Score",
    "Thinned",
    "Trace",
    "combine",
    "critic_objective",
    "l2_penalty",
    "mlp_critic",
    "probes_like",
    "score_of",
    "stein_terms",
    "value_and_trace",
]
