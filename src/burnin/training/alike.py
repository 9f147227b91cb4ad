"""Whether a checkpoint's numbers are of the kinds that the run that takes it would write."""

from __future__ import annotations

from typing import Any

from burnin.limits import brief


def require_alike(given: Any, own: Any, name: str) -> None:
    """Raises TypeError where a checkpoint has another kind of thing than a run that is alike would write.

    Example:
        >>> require_alike({"step": "ten"}, {"step": 3}, "state")
        Traceback (most recent call last):
        TypeError: state.step is no whole number
    """
    if isinstance(own, dict):
        if given is None and name.endswith(".collapse.current"):
            return  # none was under way then: a rollback may return to before a collapse
        if not isinstance(given, dict):
            raise TypeError(f"{name} is no table")
        if name.endswith("scheduler") and given.keys() != own.keys():
            raise TypeError(f"{name} has other settings")  # torch would take any, whatever it is
        for key in own.keys() & given.keys():
            require_alike(given[key], own[key], f"{name}.{key}")
    elif isinstance(own, int | float) and not isinstance(own, bool):
        if type(given) is not int and (type(given) is not float or isinstance(own, int)):
            raise TypeError(f"{name} is no {'whole ' if isinstance(own, int) else ''}number")
        if not abs(given) < 2**63:
            raise TypeError(f"{name} is {given:.3g}")
    elif isinstance(own, list | tuple):
        grows = not name.startswith(("state.optimizer", "state.scheduler"))
        if not isinstance(given, list | tuple) or (len(given) != len(own) and not grows):
            raise TypeError(f"{name} is no list of {len(own)}")
        for one, mine in zip(given, own, strict=False):
            require_alike(one, mine, name)
    elif isinstance(own, str) and not isinstance(given, str):
        raise TypeError(f"{name} is no text")
    elif isinstance(own, bool) and not (given is None or isinstance(given, bool)):
        # Nothing where it is not decided yet, as in a snapshot that a rollback returns to.
        raise TypeError(f"{name} is neither true nor false")
    elif own is None and not (given is None or isinstance(given, bool | dict)):
        raise TypeError(f"{name} is {brief(given)}")
