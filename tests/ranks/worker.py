"""One of several processes that train with their weights shared out; the first writes down what came out."""

from __future__ import annotations

import json
import os
from pathlib import Path

import torch

from burnin.assemble import build_trainer
from burnin.config import load_config
from burnin.ranks import Ranks
from burnin.training.processes import join_processes

PICTURES = [
    *("data.name=digits8", "data.side=8", "data.flip=false", "model.width=4", "run.batch_size=6"),
    *("sampler.num_steps=3", "run.compile=never", "scheme.name=hybrid", "optimizer.clip_norm=1.0"),
    "model.average=0.0",
]


def learn(ranks: Ranks) -> list[float]:
    """Losses, the last of them after going back to an earlier update; and a sum of the weights."""
    trainer = build_trainer(load_config("images-quick", PICTURES), ranks=ranks)
    losses = [trainer.update()["loss"] for _ in range(2)]
    held = trainer._of_all(trainer.snapshot()).clone()
    losses.append(trainer.update()["loss"])
    trainer.restore(held)
    losses.append(trainer.update()["loss"])
    weights = trainer._of_all(trainer.snapshot()).part("energy")
    return [*losses, sum(float(weight.double().abs().sum()) for weight in weights.values())]


def learn_together(rank: int, port: int, answer: Path) -> None:
    """In a process of its own."""
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank)}
    os.environ |= {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "LOCAL_RANK": str(rank)}
    torch.set_num_threads(1)
    together = join_processes("fsdp")
    found = learn(together)
    if together.rank == 0:
        answer.write_text(json.dumps(found), encoding="utf-8")
