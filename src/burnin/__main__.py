"""The program `burnin`, and `python -m burnin`: the command line, or what to install for it."""

from __future__ import annotations

import sys

from burnin.extras import MissingExtraError, require_extra


def main() -> None:
    """Runs the command line; without the extra `cli` it ends in one line and exit code 2."""
    try:
        require_extra("typer")
        require_extra("rich")
    except MissingExtraError as error:
        print(f"burnin: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    from burnin.cli import main as run

    run()


if __name__ == "__main__":
    main()
