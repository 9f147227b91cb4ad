"""Grids: what is said in short, what is refused, and which rows come out."""

from __future__ import annotations

import pytest

from burnin.config import load_config
from burnin.core import InputError
from burnin.studies.grid import by_group, cells, parse_grid
from burnin.studies.sweep import plan, pooled, tabulate

RINGS = load_config("rings")


def test_every_combination_is_a_row_and_seeds_are_of_one_group() -> None:
    found = cells(parse_grid("scheme=data,noise;lam=10,25;seed=0:5", RINGS))
    assert len(found) == len({cell.name for cell in found}) == 20
    assert found[0].changes == ("scheme.name=data", "scheme.lam=10", "run.seed=0")
    assert found[0].name == "scheme=data,lam=10,seed=0"
    assert len({cell.group for cell in found}) == 4
    groups = by_group(found, {cell.name: cell.changes[2] for cell in found})
    assert groups["scheme=noise, lam=25"] == [f"run.seed={seed}" for seed in range(5)]


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ("scheme", "scheme.name"),
        ("lam", "scheme.lam"),
        ("seed", "run.seed"),
        ("learning_rate", "optimizer.learning_rate"),
        ("objective.lam", "objective.lam"),
        ("sampler_from_noise.num_steps", "sampler_from_noise.num_steps"),
        ("joint.weight", "joint.weight"),
    ],
)
def test_short_keys(given: str, key: str) -> None:
    assert parse_grid(f"{given}=1", RINGS)[0].key == key


def test_without_chains_lam_is_that_of_the_objective() -> None:
    config = load_config("rings", ["objective.name=lsd"])
    assert parse_grid("lam=1,10", config)[0].key == "objective.lam"


def test_values_in_brackets_and_quotes_stay_whole() -> None:
    axes = parse_grid('model.width=64,[64,32];data.name="a;b","c,d";seed=1,4:10:3', RINGS)
    assert [axis.values for axis in axes] == [("64", "[64,32]"), ('"a;b"', '"c,d"'), ("1", "4", "7")]
    names = [cell.name for cell in cells(axes)]
    assert not any(set(name) & set('/\\ []";') for name in names)
    assert len(set(names)) == 12


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        ("", "empty"),
        (" ; ", "empty"),
        ("scheme", "not of the form"),
        ("scheme=", "not of the form"),
        ("=1", "not of the form"),
        ("shceme=data,noise", "did you mean 'scheme'"),
        ("beta=0,1", r"scheme\.beta or guard\.beta"),
        ("seed=0:5;run.seed=7", "twice"),
        ("seed=1,2,1", "has the value 1 twice"),
        ("seed=0,,2", "empty value"),
        ("seed=5:5", "holds nothing"),
        ("seed=0:100000", "too many"),
        ("title=a,b", "unknown key"),
    ],
)
def test_what_is_wrong_is_said(grid: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_grid(grid, RINGS)


def test_too_many_rows() -> None:
    with pytest.raises(InputError, match="1000000 rows"):
        cells(parse_grid("seed=0:1000;lam=0:1000", RINGS))


def test_a_value_that_the_recipe_refuses_is_found_before_anything_is_made() -> None:
    with pytest.raises(InputError, match=r"scheme\.name"):
        plan("rings", "scheme=data,nois")
    with pytest.raises(InputError, match="no recipe"):
        plan("ring", "scheme=data")


def test_rows_are_measured_as_by_the_reproduction_of_their_recipe() -> None:
    assert "ring_shares" in plan("rings", "lam=10,25").study.metrics
    assert "ring_shares" not in plan("rings", "data.name=rings10,moons").study.metrics
    sweep = plan("rings", "lam=10,25", ["run.updates=7"])
    assert [config.run.updates for config in sweep.configs.values()] == [7, 7]
    command = "burnin sweep rings --set run.updates=7 --grid scheme.lam=25"
    assert list(sweep.commands.values())[1] == command


def test_means_and_standard_errors_over_seeds() -> None:
    found = cells(parse_grid("lam=1,2;seed=0:3", RINGS))
    rows = {cell.name: {"kl": float(number), "said": "words"} for number, cell in enumerate(found)}
    text = tabulate(found, ("kl", "said"), rows)
    assert "| lam=1 | 3 | 1 ± 0.58 |" in text  # the deviation of 0, 1 and 2 is 1, over √3
    assert "| lam=2 | 3 | 4 ± 0.58 |" in text
    assert "words" not in text
    assert pooled([{"kl": 1.0}]) == {"kl": {"mean": 1.0, "error": None, "rows": 1}}
