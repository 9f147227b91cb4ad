"""Scripts that complete burnin's commands and options in a shell.

They are written out whole, from the program's own commands. What typer would install starts the program at
every press of the key, and loading torch takes seconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import typer
import typer.core
import typer.main

from burnin.checked import nearest
from burnin.config import recipe_names
from burnin.core import InputError

PROGRAM = "burnin"


@dataclass(frozen=True)
class Command:
    """What can follow a command.

    Attributes:
        about: what it does, in a few words.
        options: each with what it is for.
        words: what its arguments may be, where they are names and not files.
    """

    about: str
    options: Mapping[str, str]
    words: tuple[str, ...] = ()


def completion_script(app: typer.Typer, shell: str) -> str:
    """The script for a shell.

    Raises:
        InputError: for a shell that there is none for.
    """
    if shell not in _WRITERS:
        known = ", ".join(_WRITERS)
        raise InputError(
            f"there is no completion for {shell!r}{nearest(shell, list(_WRITERS))}; known: {known}"
        )
    return _WRITERS[shell](commands_of(app))


def commands_of(app: typer.Typer) -> dict[str, Command]:
    """Every command of the program, with its options."""
    from burnin.studies import STUDIES

    words = {"train": tuple(recipe_names()), "reproduce": tuple(STUDIES), "completion": tuple(_WRITERS)}
    group: Any = typer.main.get_command(app)
    found = {}
    for name, command in sorted(group.commands.items()):
        # What a group of commands, such as `features`, takes is what its commands take.
        within = command.commands if isinstance(command, typer.core.TyperGroup) else {}
        options = {
            option: _short(parameter.help)
            for one in (command, *within.values())
            for parameter in one.params
            if parameter.param_type_name == "option"
            for option in parameter.opts
        }
        found[name] = Command(
            _short(command.help),
            {**options, "--help": "Show what it does."},
            words.get(name, tuple(within)),
        )
    return found


def _short(text: str | None) -> str:
    """The first sentence or so, without what shells take amiss."""
    first = re.split(r"[.:;]\s|\n", (text or "").strip())[0].rstrip(".")
    return re.sub(r"[^\w ,./()=-]", "", first)


def _bash(commands: Mapping[str, Command]) -> str:
    cases = "\n".join(
        f'    {name}) options="{" ".join(command.options)}"; words="{" ".join(command.words)}" ;;'
        for name, command in commands.items()
    )
    return f"""# burnin's commands and options, for bash
_{PROGRAM}() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" options="" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{" ".join(commands)} --help" -- "$current"))
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{cases}
  esac
  if [[ "$current" == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  elif [ -n "$words" ] && [ "$COMP_CWORD" -eq 2 ]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  fi
}}
complete -o default -F _{PROGRAM} {PROGRAM}
"""


def _zsh(commands: Mapping[str, Command]) -> str:
    listed = "\n".join(f"    '{name}:{command.about}'" for name, command in commands.items())
    cases = "\n".join(_zsh_case(name, command) for name, command in commands.items())
    return f"""#compdef {PROGRAM}
# burnin's commands and options, for zsh
_{PROGRAM}() {{
  local -a commands
  commands=(
{listed}
  )
  if (( CURRENT == 2 )); then
    _describe 'command' commands
    return
  fi
  case "$words[2]" in
{cases}
  esac
}}
if [ "$funcstack[1]" = "_{PROGRAM}" ]; then _{PROGRAM} "$@"; else compdef _{PROGRAM} {PROGRAM}; fi
"""


def _zsh_case(name: str, command: Command) -> str:
    options = " ".join(f"'{option}:{about}'" for option, about in command.options.items())
    other = f"compadd -- {' '.join(command.words)}" if command.words else "_files"
    return f"""    {name})
      local -a options; options=({options})
      if [[ "$PREFIX" == -* ]]; then _describe 'option' options; else {other}; fi ;;"""


def _fish(commands: Mapping[str, Command]) -> str:
    lines = ["# burnin's commands and options, for fish"]
    start = f"complete -c {PROGRAM}"
    for name, command in commands.items():
        lines.append(f"{start} -f -n __fish_use_subcommand -a {name} -d '{command.about}'")
    for name, command in commands.items():
        seen = f"{start} -n '__fish_seen_subcommand_from {name}'"
        for option, about in command.options.items():
            flag = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            lines.append(f"{seen} {flag} -d '{about}'")
        if command.words:
            lines.append(f"{seen} -f -a '{' '.join(command.words)}'")
    return "\n".join(lines) + "\n"


_WRITERS: dict[str, Callable[[Mapping[str, Command]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
