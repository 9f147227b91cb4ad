"""Recipes: complete, merged, changed by --set, and refused by name when wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from burnin import assemble
from burnin.assemble import build_trainer
from burnin.checked import nearest
from burnin.config import MEASURED, dump_config, load_config, load_head, read_run_config, recipe_names
from burnin.core import InputError
from burnin.settings import Config

LEAST = """
title = "least"
[data]
name = "circles"
[model]
temperature = 1.0
[scheme]
name = "data"
[sampler]
num_steps = 3
step_size = 0.1
"""


@pytest.fixture
def least(tmp_path: Path) -> str:
    path = tmp_path / "least.toml"
    path.write_text(LEAST, encoding="utf-8")
    return str(path)


def refusal(recipe: str, *changes: str) -> str:
    with pytest.raises(InputError) as caught:
        load_config(recipe, changes)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.usefixtures("small_pictures")
@pytest.mark.parametrize("name", recipe_names())
def test_built_in_recipes_load_build_and_round_trip(name: str, tmp_path: Path) -> None:
    config = load_config(name)
    assert config.title
    assert config.about
    assert config.cost
    text = dump_config(config)
    (tmp_path / "config.toml").write_text(text, encoding="utf-8")
    again = read_run_config(tmp_path)
    assert again == config
    assert dump_config(again) == text
    assert again.noise_sampler() == config.noise_sampler()
    assert load_config(str(tmp_path / "config.toml")) == config
    build_trainer(config)


def test_recipes_of_the_issue_are_there() -> None:
    assert {"demo", "rings", "rings-quick"} <= set(recipe_names())


@pytest.mark.parametrize("name", recipe_names(MEASURED))
def test_recipes_that_train_nothing_say_what_they_are(name: str) -> None:
    from burnin.studies import STUDIES

    head = load_head(name)
    assert head.title
    assert head.about
    assert head.cost
    assert any(name in (study.recipe, study.quick_recipe) for study in STUDIES.values())
    assert "trains no model" in refusal(name)


def test_expectations_name_known_rows_and_metrics() -> None:
    from burnin.studies import STUDIES

    recipes = [(study, r) for study in STUDIES.values() for r in (study.recipe, study.quick_recipe) if r]
    for study, recipe in recipes:
        judged = study.rows if study.pooled is None else study.pooled
        for expected in load_head(recipe).expected:
            assert expected.scheme in judged
            times = (expected.at_most_times, expected.at_least_times)
            assert times == (None, None) or expected.of_scheme in judged
            metrics = (expected.metric, expected.of_metric, expected.give_or_take)
            assert {metric for metric in metrics if metric is not None} <= set(study.metrics)
            bounds = (expected.at_most, expected.at_least, *times)
            assert any(bound is not None for bound in bounds)
            assert expected.metric in expected.describe()


@pytest.mark.usefixtures("small_pictures")
def test_rows_of_every_study_are_valid_changes_of_their_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    from burnin.studies import STUDIES, Study

    monkeypatch.setattr(assemble, "MOMENT_SAMPLES", 100)  # large pictures take seconds
    for study in STUDIES.values():
        settings = [study.load(study.recipe, changes) for changes in study.rows.values()]
        if study.quick_rows:
            assert study.quick_recipe is not None
            settings += [study.load(study.quick_recipe, study.rows[row]) for row in study.quick_rows]
        if isinstance(study, Study):
            small = [_small(config) for config in settings]
            for config in {dump_config(config): config for config in small}.values():
                build_trainer(config)


def _small(config: Config) -> Config:
    """Seeds build the same, and the papers' banks of pictures take much memory."""
    run, scheme = {"seed": 0}, {"bank_size": 200}
    return config.model_copy(
        update={"run": config.run.model_copy(update=run), "scheme": config.scheme.model_copy(update=scheme)}
    )


def test_a_short_recipe_gets_every_default(least: str) -> None:
    config = load_config(least)
    assert config.run.batch_size == Config.model_fields["run"].default.batch_size
    assert config.sampler.kind == "langevin"
    written = dump_config(config)
    for section in ("run", "data", "model", "scheme", "noise", "sampler", "optimizer", "guard", "study"):
        assert f"[{section}]" in written


# ---------------------------------------------------------------- unknown and wrong


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("sampelr.num_steps=3", "did you mean 'sampler'?"),
        ("model.temprature=3", "did you mean 'temperature'?"),
        ("optimizer.lerning_rate=1", "did you mean 'learning_rate'?"),
        ("run.update=1", "did you mean 'updates'?"),
        ("scheme.lambda=1", "did you mean 'lam'?"),
        ("sampler_from_noise.num_step=1", "did you mean 'num_steps'?"),
        ("study.sample=1", "did you mean 'samples'?"),
    ],
)
def test_an_unknown_key_names_the_nearest(least: str, change: str, words: str) -> None:
    message = refusal(least, change)
    assert "unknown key" in message
    assert words in message
    assert change.split("=")[0].split(".")[0] in message


def test_an_unknown_key_far_from_all_gets_no_hint(least: str) -> None:
    message = refusal(least, "run.zzzzqqq=1")
    assert "'run.zzzzqqq'" in message
    assert "did you mean" not in message


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ('run.updates="many"', "run.updates"),
        ("run.updates=1.5", "run.updates"),
        ("run.updates=0", "run.updates"),
        ("run.updates=-3", "run.updates"),
        ("run.batch_size=0", "run.batch_size"),
        ("run.log_every=0", "run.log_every"),
        ("run.checkpoint_every=0", "run.checkpoint_every"),
        ("run.tensorboard=7", "run.tensorboard"),
        ("run=5", "run"),
        ("model.temperature=hot", "model.temperature"),
        ("model.gaussian_factor=some", "model.gaussian_factor"),
        ("model.frequencies=1.0", "model.frequencies"),
        ("model.average=1.5", "model.average"),
        ("data.noise=-1", "data.noise"),
        ("scheme.name=hybird", "scheme.name"),
        ("scheme.bank_size=0", "scheme.bank_size"),
        ("scheme.refresh=2", "scheme.refresh"),
        ("sampler.kind=gibbs", "sampler.kind"),
        ("sampler.step_size=small", "sampler.step_size"),
        ("sampler.step_size=[[1]]", "sampler.step_size"),
        ("sampler.num_steps=-1", "sampler.num_steps"),
        ("sampler.num_chains=0", "sampler.num_chains"),
        ("sampler_from_noise.num_steps=few", "num_steps"),
        ("sampler_from_noise=3", "sampler_from_noise"),
        ("optimizer.decay=exponential", "optimizer.decay"),
        ("optimizer.decay_from=2", "optimizer.decay_from"),
        ("optimizer.final_rate=0", "optimizer.final_rate"),
        ("study.samples=0", "study.samples"),
        ("study.distance_sets=3", "study.distance_sets"),
        ("expected=[{scheme=1}]", "expected"),
    ],
)
def test_wrong_values_are_refused_by_key(least: str, change: str, key: str) -> None:
    assert key in refusal(least, change)


def test_a_missing_choice_is_named(tmp_path: Path) -> None:
    """A step size and a number of steps have no silent default."""
    path = tmp_path / "r.toml"
    path.write_text(LEAST.replace("num_steps = 3\nstep_size = 0.1", ""), encoding="utf-8")
    message = refusal(str(path))
    assert "sampler.num_steps is missing" in message
    assert "sampler.step_size is missing" in message


def test_several_faults_are_named_at_once(least: str) -> None:
    message = refusal(least, "run.update=1", "model.width=wide")
    assert "run.update" in message
    assert "model.width" in message


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("data.name=circle", "circles"),
        ("data.file=x.csv", "either a name"),
        ("model.activation=relu6", "activation"),
        ("model.width=0", "width"),
        ("model.temperature=0", "temperature"),
        ("model.temperature=nan", "temperature"),
        ("sampler.step_size=-1.0", "step_size"),
        ("sampler.step_size=[[5, 0.1], [5, 0.2]]", "rising"),
        ("optimizer.name=Adm", "did you mean 'Adam'?"),
        ("optimizer.options={beta=1.0}", "does not take these options"),
        ("optimizer.learning_rate=-1.0", "does not take these options"),
        ("noise.scale=0", "scale"),
        ("guard.factor=2", "factor"),
        ("sampler.num_chains=500", "num_chains"),
    ],
)
def test_what_only_the_parts_can_know_is_refused_when_they_are_built(
    least: str, change: str, words: str
) -> None:
    changes = [change, "scheme.name=noise"]
    with pytest.raises(InputError, match=re.escape(words)) as caught:
        build_trainer(load_config(least, changes))
    assert "\n" not in str(caught.value)


def test_a_bank_smaller_than_a_batch_is_refused_before_training(least: str) -> None:
    config = load_config(least, ["scheme.name=persistent", "scheme.bank_size=5", "run.batch_size=6"])
    with pytest.raises(InputError, match="bank_size"):
        build_trainer(config)


# ---------------------------------------------------------------- --set


def test_set_reads_toml_values_and_plain_words(least: str) -> None:
    config = load_config(
        least,
        [
            "run.seed=7",
            "model.temperature=1e-2",
            "model.frequencies=[1, 2.5]",
            "run.tensorboard=false",
            "data.name=moons",
            'title="a = b"',
            "about=two words",
            "sampler.step_size=[[0, 0.3], [9, 0.1]]",
            "sampler_from_noise.num_steps = 9",
            "optimizer.options={betas=[0.5, 0.9], amsgrad=true}",
        ],
    )
    assert config.run.seed == 7
    assert config.model.temperature == 0.01
    assert config.model.frequencies == [1.0, 2.5]
    assert config.run.tensorboard is False
    assert config.data.name == "moons"
    assert config.title == "a = b"
    assert config.about == "two words"
    assert config.sampler.step_size == [(0, 0.3), (9, 0.1)]
    assert config.noise_sampler().num_steps == 9
    assert config.sampler.num_steps == 3
    assert config.optimizer.options == {"betas": [0.5, 0.9], "amsgrad": True}


def test_the_last_set_wins_and_a_section_can_be_cleared(least: str) -> None:
    config = load_config(
        least, ["run.seed=1", "sampler_from_noise.num_steps=9", "run.seed=2", "sampler_from_noise={}"]
    )
    assert config.run.seed == 2
    assert config.sampler_from_noise == {}


@pytest.mark.parametrize("change", ["run.seed", "", "=3", " =3"])
def test_a_set_without_key_or_value_shows_the_form(least: str, change: str) -> None:
    assert "key=value" in refusal(least, change)


def test_a_set_through_a_value_is_refused(least: str) -> None:
    assert "no section" in refusal(least, "title.inner=3")


# ---------------------------------------------------------------- files and bases


def test_an_unknown_recipe_names_the_nearest() -> None:
    message = refusal("ring")
    assert "did you mean 'rings'?" in message
    assert "burnin recipes" in message


def test_a_missing_or_broken_file_is_named(tmp_path: Path) -> None:
    assert "no recipe file" in refusal(str(tmp_path / "none.toml"))
    broken = tmp_path / "broken.toml"
    broken.write_text("title = ")
    assert "not valid TOML" in refusal(str(broken))
    broken.write_bytes(b"title = \xff\xfe")
    assert "not UTF-8" in refusal(str(broken))


def test_base_is_merged_key_by_key(tmp_path: Path, least: str) -> None:
    middle, top = tmp_path / "middle.toml", tmp_path / "top.toml"
    middle.write_text(
        f'base = "{least}"\n[run]\nseed = 3\nupdates = 5\n[sampler_from_noise]\nnum_steps = 7\n'
    )
    top.write_text(
        f'base = "{middle}"\ntitle = "top"\n[run]\nupdates = 9\n[sampler]\nstep_size = [[0, 1.0]]\n'
    )
    config = load_config(str(top))
    assert (config.title, config.run.seed, config.run.updates) == ("top", 3, 9)
    assert config.sampler.num_steps == 3
    assert config.sampler.step_size == [(0, 1.0)]  # a list is replaced, not merged
    assert config.noise_sampler().num_steps == 7
    assert "base" not in dump_config(config)


def test_what_is_expected_of_a_base_is_not_expected_of_the_recipe(tmp_path: Path, least: str) -> None:
    base, top = tmp_path / "base.toml", tmp_path / "top.toml"
    base.write_text(LEAST + '[[expected]]\nscheme = "data"\nmetric = "kl"\nat_most = 0.1\n')
    top.write_text(f'base = "{base}"\n')
    assert len(load_config(str(base)).expected) == 1
    assert load_config(str(top)).expected == []


def test_a_base_can_be_a_built_in_and_must_exist(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('base = "rings"\n[run]\nseed = 11\n')
    assert load_config(str(path)) == load_config("rings", ["run.seed=11", "expected=[]"])
    path.write_text('base = "rigns"\n')
    assert "did you mean 'rings'?" in refusal(str(path))


def test_a_recipe_cannot_be_its_own_base(tmp_path: Path) -> None:
    one, two = tmp_path / "one.toml", tmp_path / "two.toml"
    one.write_text(f'base = "{two}"\n')
    two.write_text(f'base = "{one}"\n')
    assert "its own base" in refusal(str(one))


def test_a_folder_without_config_is_no_run(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InputError, match="is no run"):
            read_run_config(folder)


def test_nearest_gives_a_hint_or_nothing() -> None:
    assert nearest("hybird", ["hybrid", "data"]) == "; did you mean 'hybrid'?"
    assert nearest("xyz", ["hybrid", "data"]) == ""
