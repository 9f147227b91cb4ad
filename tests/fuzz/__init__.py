"""Files of strangers, by the million: `python -m tests.fuzz.run --help`."""
