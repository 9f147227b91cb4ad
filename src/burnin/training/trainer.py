"""Training, whole: batch → starts → chains → objective → backward → store → diagnostics → checkpoint."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from burnin.core import CheckpointError, DivergedError, Energy, InputError, Outcome
from burnin.diagnostics import ChainNoise
from burnin.energies import spectral
from burnin.limits import brief
from burnin.objectives import DirectObjective, Negatives
from burnin.rng import Streams
from burnin.samplers import Engine, Prepared
from burnin.training.alike import require_alike
from burnin.training.arms import Arm, run_arms
from burnin.training.checkpoint import (
    Snapshot,
    load_weights,
    pack_optimizer,
    save_checkpoint,
    unpack_optimizer,
)
from burnin.training.direct import direct_update, objective_tensors, pack_objective, restore_objective
from burnin.training.folder import MetricsLog, RunFolder
from burnin.training.force import chain_noise, first_force
from burnin.training.frugal import FrugalEnergy
from burnin.training.fused import Learned, fused_update
from burnin.training.guard import Guard, GuardSettings
from burnin.training.interrupt import ctrl_c
from burnin.training.numbers import made_numbers, update_numbers
from burnin.training.online import TrainingWatch
from burnin.training.parts import Metrics, Parts
from burnin.training.remedies import Remedies, lower_rates
from burnin.training.several import plan_of, several_updates

LOGGED = "logged"
"""Where a checkpoint says how many lines of metrics there were."""
TOGETHER = 50
"""Updates that are made in one go at most, where they can be: Ctrl-C waits for them."""


class Trainer:
    """Trains an energy. The state of everything is in `snapshot`, so a run can stop and go on anywhere.

    Arguments:
        parts: the energy, the data, the arms and the rest.
        batch_size: data points, and chains in each arm, for each update; of all processes together.
        streams: the run's random streams; "data" and "chains" are used, and "objective" by an objective
            without chains.
    """

    def __init__(self, parts: Parts, *, batch_size: int, streams: Streams) -> None:
        self.parts = parts
        self.batch_size = batch_size
        self.streams = streams
        self.step = 0
        self.remedies = Remedies()
        self._seed = streams.seed
        self.engine = parts.engine or Engine()
        self.watch = TrainingWatch()
        self._direct = parts.objective if isinstance(parts.objective, DirectObjective) else None
        if (self._direct is None) == (not parts.arms):
            raise InputError("the contrast needs arms, and an objective without chains has none")
        if self._direct is not None and parts.ranks.size > 1:
            raise InputError("an objective without chains is trained by one process; take --devices 1")
        if self._direct is not None and parts.frugal is not None:
            raise InputError("run.pieces and run.precision are of chains; leave them out without chains")
        if batch_size < parts.ranks.size:
            raise InputError(
                f"batch_size is {batch_size} for {parts.ranks.size} processes; each needs a row at least"
            )
        self._frugal: FrugalEnergy | None = None
        if parts.frugal is not None:
            parts.frugal.require_safe(parts.energy, parts.arms)
            self._frugal = FrugalEnergy(parts.energy, parts.frugal)
        self.guard = Guard(parts.guard) if parts.guard is not None else None
        spectral.rest(parts.energy)  # chains and losses of an update see one energy
        self.averaged: AveragedModel | None = None
        if parts.average > 0:
            averaging = get_ema_multi_avg_fn(parts.average)  # type: ignore[no-untyped-call]
            self.averaged = AveragedModel(parts.energy, multi_avg_fn=averaging)
        self._finite = True
        self._native: bool | None = None  # whether the run uses native code: decided once
        self._logged: int | None = None  # lines of metrics when the checkpoint was saved that it goes on from
        self._plan = None
        simple = parts.average == 0 and parts.scale is None and parts.classification is None
        if simple and parts.clip_norm is None:
            self._plan = plan_of(
                parts.energy, parts.data, parts.arms, parts.optimizer, parts.scheduler, parts.objective
            )
        self._open_streams()
        self._last_good = self.snapshot().clone()

    @property
    def model(self) -> nn.Module:
        """The energy to judge and to sample: the averaged one where there is an average."""
        if self.averaged is None:
            return self.parts.energy
        module = self.averaged.module
        assert isinstance(module, nn.Module)
        return module

    @property
    def arms(self) -> Sequence[Arm]:
        """Where negatives come from, as rollbacks have left it."""
        return self.remedies.arms(self.parts.arms)

    def update(self) -> dict[str, float]:
        """One update of the weights; returns its numbers."""
        parts = self.parts
        if self._direct is not None:
            return self._update_directly(self._direct)
        # Drawn alike by all processes, so that numbers do not depend on how many share a batch.
        batch = parts.data.sample(self.batch_size, self.streams["data"])
        data = parts.ranks.own(batch)
        energy = self._frugal or self.engine.prepare(parts.energy, data, self._native)
        if self._native is None and isinstance(energy, Prepared):
            self._native = energy.built.library is not None
        if parts.scale is not None:
            parts.scale.update(energy, batch, parts.ranks)
        scale, stream = self._chain_scale(data), self.streams["chains"]
        arms = self.arms
        runs = run_arms(arms, energy, batch, scale, stream, self.engine, self.step, parts.ranks)
        negatives = [
            Negatives(r.position, arm.weight, arm.beta_at(self.step), arm.variant, arm.pool)
            for r, arm in zip(runs, arms, strict=True)
        ]
        learning_rate = float(parts.optimizer.param_groups[0]["lr"])
        learned = self._learn(energy, data, negatives)
        if parts.scheduler is not None:
            parts.scheduler.step()
        for arm, arm_run in zip(arms, runs, strict=True):
            arm.start.store(arm_run.drawn, arm_run.position)
        self._follow()
        self.step += 1
        self._finite = learned.finite
        numbers = update_numbers(arms, runs, learned.infos, learned.loss, learning_rate)
        return numbers | learned.numbers

    def _update_directly(self, objective: DirectObjective) -> dict[str, float]:
        """One update by an objective without chains."""
        parts, rate = self.parts, float(self.parts.optimizer.param_groups[0]["lr"])
        learned = direct_update(parts, objective, self.batch_size, self.streams)
        if parts.scheduler is not None:
            parts.scheduler.step()
        self._follow()
        self.step += 1
        self._finite = learned.finite
        return {"loss": learned.loss, "learning_rate": rate, **learned.numbers}

    def _follow(self) -> None:
        """What comes after the weights: their spectral norms and their average."""
        self.parts.ranks.renew(self.parts.energy)
        spectral.advance(self.parts.energy)
        if self.averaged is not None:
            with spectral.own_vectors(self.averaged):
                self.averaged.update_parameters(self.parts.energy)
            spectral.advance(self.averaged)

    def updates(self, most: int) -> Iterator[dict[str, float]]:
        """At least one update and at most `most`; gives each one's numbers, `step` counting along.

        Several are made in one native call where the parts are simple enough (`burnin.training.several`);
        then weights and streams are at the last of them from the first number on.
        """
        made = None
        if self._plan is not None and self.remedies == Remedies():
            made = several_updates(self._plan, most, self.batch_size, self.streams, self.engine, self._native)
            self._native = True if made is not None else self._native
        if made is None:
            yield self.update()
            return
        name = self.parts.arms[0].name
        for one in made:
            self.step += 1
            self._finite = one.finite
            yield made_numbers(name, one)

    def _learn(self, energy: Energy, data: Tensor, negatives: Sequence[Negatives]) -> Learned:
        """Changes the weights: in one native call where it can be done, else by torch."""
        parts = self.parts
        limit = None
        if parts.clip_norm is not None:
            limit = parts.clip_norm * sum(arm.weight for arm in parts.arms)
        if parts.classification is None:
            learned = fused_update(energy, parts.objective, parts.optimizer, data, negatives, limit)
            if learned is not None:
                return learned
        parts.optimizer.zero_grad(set_to_none=True)
        loss, infos = parts.objective(energy, data, negatives)
        loss, numbers = parts.with_classes(loss, self.streams)
        loss.backward()  # type: ignore[no-untyped-call]
        parts.ranks.sum_gradients(parts.energy.parameters())
        if limit is not None:
            nn.utils.clip_grad_norm_(parts.energy.parameters(), limit)
        parts.optimizer.step()
        norm = nn.utils.get_total_norm(parts.energy.parameters())
        return Learned(loss.item(), infos, math.isfinite(norm.item()), numbers)

    def train(
        self,
        num_updates: int,
        *,
        folder: RunFolder | None = None,
        checkpoint_every: int = 500,
        log_every: int = 1,
        tensorboard: bool = False,
        on_update: Callable[[int, Metrics], None] | None = None,
        on_event: Callable[[str], None] | None = None,
        enough: Callable[[int], bool] | None = None,
        beside: Callable[[Snapshot], Snapshot] | None = None,
    ) -> Outcome:
        """Updates until `num_updates` in all have been made, or until `enough`, asked after each, says so.

        Ctrl-C ends it after the current one. What others need to go on, `beside` adds to each checkpoint.
        Of several processes, the one that is given a folder writes.

        Raises:
            DivergedError: when the guard has used up its tries, or there is no guard.
        """
        if 0 < num_updates <= self.step:
            return Outcome.OK
        log = None
        if folder is not None:
            log = MetricsLog(folder, self.step, lines=self._logged, tensorboard=tensorboard)
            self._logged = None  # what is written from now on counts too
        # The losses' own passes count as a few steps more.
        steps_each = 3 + sum(arm.num_steps for arm in self.parts.arms)
        self.engine.expected_steps = (num_updates - self.step) * steps_each
        before, due = time.perf_counter(), False
        added = beside or (lambda snapshot: snapshot)

        def save(snapshot: Snapshot) -> None:
            whole = self._of_all(snapshot)
            if folder is not None and log is not None:
                log.flush()
                held = Snapshot(whole.tensors, {**whole.state, LOGGED: log.lines})
                save_checkpoint(folder.path, self.step, added(held))

        try:
            if self.step == 0:
                save(self.snapshot())
            with ctrl_c() as interrupted:
                while self.step < num_updates:
                    left = min(num_updates - self.step, checkpoint_every - self.step % checkpoint_every)
                    trouble = None
                    for numbers in self.updates(min(left, TOGETHER)):
                        trouble = self._trouble(numbers)
                        if trouble is not None:
                            break
                        if log is not None and (self.step % log_every == 0 or self.step == num_updates):
                            log.write(self.step, {**numbers, "seconds": time.perf_counter() - before})
                        if on_update is not None:
                            on_update(self.step, numbers)
                        said = self.watch.look(self.step, numbers)
                        if self.step == 1 and (self.guard is None or self.guard.rollbacks == 0):
                            said = [*first_force(numbers, self.chain_noise()), *said]
                        for warning in said:
                            if log is not None:
                                log.note(self.step, warning)
                            if on_event is not None:
                                on_event(warning)
                    if trouble is not None:
                        message = self._roll_back(trouble)
                        if log is not None:
                            log.rewind(self.step, message)
                        save(self._last_good)
                        if on_event is not None:
                            on_event(message)
                        continue
                    stop = self.parts.ranks.any(interrupted())
                    done = self.step == num_updates or (enough is not None and enough(self.step))
                    due = due or self.step % checkpoint_every == 0
                    # What a rollback returns to must be good: a suspicious update is not saved.
                    wait = self.guard is not None and self.guard.suspicious
                    if stop or done or (due and not wait):
                        due = False
                        self._last_good = self.snapshot().clone()
                        save(self._last_good)
                    if stop:
                        return Outcome.INTERRUPTED
                    if done:
                        return Outcome.OK
        finally:
            # Chains that come later count for themselves.
            self.engine.expected_steps = 0
            if log is not None:
                log.close()
        return Outcome.OK

    def chain_noise(self) -> dict[str, ChainNoise]:
        """What sets the noise of each arm's chains, as they are now."""
        parts = self.parts
        return chain_noise(
            self.arms, parts.data.dim, update=self.step, scale=parts.scale, factor=self.remedies.step_factor
        )

    def snapshot(self) -> Snapshot:
        """Weights, average, optimiser, schedule, banks, scale, objective, streams, guard and step count."""
        parts = self.parts
        optimizer = pack_optimizer(parts.optimizer)
        named: dict[str, Mapping[str, Tensor]] = {
            "energy": parts.energy.state_dict(),
            "optimizer": optimizer.tensors,
            "stream": self.streams.state(),
            **{f"start.{arm.name}": arm.start.state() for arm in parts.arms},
        }
        if self.averaged is not None:
            named["average"] = self.averaged.state_dict()
        if parts.scale is not None:
            named["scale"] = parts.scale.state()
        if self._direct is not None:
            named |= objective_tensors(self._direct)
        tensors = {f"{room}.{name}": value for room, part in named.items() for name, value in part.items()}
        state: dict[str, Any] = {
            "step": self.step,
            "remedies": self.remedies.state(),
            "optimizer": optimizer.state,
            "scheduler": parts.scheduler.state_dict() if parts.scheduler is not None else None,
            "guard": self.guard.state() if self.guard is not None else None,
            "watch": dict(self.watch.negatives.streaks),
            "online": self.watch.state(),
            "native": self._native,
        }
        if self._direct is not None:
            state["objective"] = pack_objective(self._direct)
        return Snapshot(tensors, state)

    def _of_all(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with what all processes hold, so that any number of them can go on from it."""
        ranks, tensors = self.parts.ranks, dict(snapshot.tensors)
        if ranks.size == 1:
            return snapshot
        for name, value in sorted(snapshot.tensors.items()):
            if name.startswith("start."):
                tensors[name] = ranks.gather(value, int(ranks.sum(torch.tensor(len(value)))))
                continue
            tensors[name] = whole = ranks.whole(value)
            if name.startswith("energy.") and not ranks.first(whole).equal(whole):
                raise DivergedError(
                    f"the weights of process {ranks.rank} differ from those of process 0 ({name}): the "
                    "machines compute differently; go on from the last checkpoint on machines of one kind"
                )
        return Snapshot(tensors, snapshot.state)

    def restore(self, snapshot: Snapshot) -> None:
        """Puts everything back to where `snapshot` was taken, by this number of processes or by another.

        Raises:
            CheckpointError: when the snapshot was made by a run with other parts.
        """
        parts, state = self.parts, snapshot.state
        try:
            require_alike(state, self.snapshot().state, "state")
            load_weights(parts.energy, snapshot.part("energy"), parts.ranks)
            moments = Snapshot(snapshot.part("optimizer"), state["optimizer"])
            unpack_optimizer(parts.optimizer, moments, parts.ranks)
            for arm in parts.arms:
                arm.start.restore(snapshot.part(f"start.{arm.name}"))
            if self.averaged is not None:
                load_weights(self.averaged, snapshot.part("average"))
            if parts.scale is not None:
                parts.scale.restore(snapshot.part("scale"))
            if self._direct is not None:
                restore_objective(self._direct, snapshot)
            if parts.scheduler is not None:
                parts.scheduler.load_state_dict(state["scheduler"])
            if self.guard is not None:
                self.guard.restore(state["guard"])
            self.watch.negatives.streaks = {name: int(streak) for name, streak in state["watch"].items()}
            # Checkpoints of before there were such diagnostics lack them; these then begin anew.
            self.watch.restore(state.get("online", {}))
            self.streams.restore(snapshot.part("stream"))
            self.step, self.remedies = state["step"], Remedies.of(state["remedies"])
            self._native, self._logged = state["native"], _lines(state.get(LOGGED))
        except KeyError as error:
            raise CheckpointError(
                f"the checkpoint lacks {brief(error)}: it was made with other settings"
            ) from error
        except (TypeError, ValueError, AttributeError, IndexError, OverflowError, RuntimeError) as error:
            raise CheckpointError(
                f"the checkpoint does not fit this run ({brief(error)}): it is damaged, or of other settings"
            ) from error
        self._last_good = self.snapshot().clone()

    def _open_streams(self) -> None:
        # Before the first snapshot, so that a checkpoint of update 0 holds them too.
        names = ("data", "chains") if self._direct is None else ("data", "objective")
        for name in names if self.parts.classification is None else (*names, "labels"):
            self.streams[name]

    def _chain_scale(self, data: Tensor) -> Tensor | None:
        scale = self.parts.scale.value() if self.parts.scale is not None else None
        if self.remedies.step_factor == 1.0:
            return scale
        return self.remedies.step_factor * (scale if scale is not None else torch.ones((), dtype=data.dtype))

    def _trouble(self, numbers: Metrics) -> str | None:
        stopped = sum(value for name, value in numbers.items() if name.startswith("stopped/"))
        if stopped:
            return f"{int(stopped)} chains left the finite numbers"
        if not self._finite:
            return "a weight is not finite"
        watched = {k: v for k, v in numbers.items() if k.startswith(("d/", "r/")) or k == "loss"}
        # A β-weighted loss is that of a classifier: next to 0 while negatives are out of the game, and many
        # times as much when one comes near the data, which is no divergence. d and r are watched either way.
        # So is that of nce, and of a joint energy: level until something is learned, and then it falls.
        falls = ("accuracy", "cross_entropy")
        classifier = any(name.startswith("grad_scale/") or name in falls for name in numbers)
        guard = self.guard or Guard(GuardSettings())
        return guard.look(watched, only_finite=("loss",) if classifier else ())

    def _roll_back(self, trouble: str) -> str:
        at = self.step
        if self.guard is None or self.guard.exhausted:
            tried = 0 if self.guard is None else self.guard.rollbacks
            raise DivergedError(
                f"training diverged at update {at}: {trouble}; given up after {tried} rollbacks: "
                "lower learning_rate or step_size, or raise num_steps"
            )
        settings, rollbacks = self.guard.settings, self.guard.rollbacks + 1
        self.restore(self._last_good.clone())
        self.guard.rollbacks = rollbacks
        rate = float(self.parts.optimizer.param_groups[0]["lr"])
        self.remedies = self.remedies.more(settings)
        if "learning_rate" in settings.remedies:
            further = self._direct.optimizers().values() if self._direct is not None else ()
            lower_rates((self.parts.optimizer, *further), self.parts.scheduler, settings.factor)
        done = self.remedies.words(settings, rate)
        # A rollback that only repeats itself would diverge again: chains and data draw anew.
        self.streams = Streams(self._seed + 1_000_003 * rollbacks, self.streams.device)
        self._open_streams()
        self._last_good = self.snapshot().clone()
        return (
            f"update {at}: {trouble}; rolled back to update {self.step}, {done} "
            f"(try {rollbacks} of {settings.tries})"
        )


def _lines(logged: object) -> int | None:
    """How many lines a checkpoint says there were; those of before it was counted say nothing."""
    if logged is None or (type(logged) is int and logged >= 0):
        return logged
    raise TypeError(f"{LOGGED} is no count")
