"""What burnin is made of: which packages, pinned how, under which licences.

python tools/supply.py pins       all that `make setup` installs is pinned, and installed as pinned
python tools/supply.py licences   writes docs/licences.md from what is installed
python tools/supply.py pythons    the pinned packages have wheels for Python 3.11 to 3.13 (asks the index)
python tools/supply.py audit      known vulnerabilities of the pinned packages (needs a network)
"""

from __future__ import annotations

import importlib.metadata as metadata
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "licences.md"
PYTHONS = ("3.11", "3.12", "3.13")
GROUPS = {"": "always", "cli": "[cli]", "report": "[report]", "images": "[images]", "tables": "[tables]"}
"""What a user installs, in the order in which a package is told of once; the rest is for development."""
SHORT = {
    "Apache Software License": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "BSD License": "BSD",
    "3-Clause BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
    "ISC License (ISCL)": "ISC",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF",
}
FREE = re.compile(r"MIT|BSD|Apache-2\.0|0BSD|PSF|ISC|MPL-2\.0|Zlib|CC0|BSL-1\.0|LLVM")
"""What may be used, changed and passed on, alone or within a program of any licence."""
COPYLEFT = re.compile(r"\b(A?GPL|GNU (?:Affero )?General)", re.IGNORECASE)


def project() -> dict[str, list[str]]:
    """The requirements of pyproject.toml by extra, "" for those that are always there, "build" to build."""
    content = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = content["project"]
    return {
        "": needed["dependencies"],
        "build": content["build-system"]["requires"],
        **needed["optional-dependencies"],
    }


def closure(extras: Iterable[str]) -> dict[str, metadata.Distribution]:
    """The installed packages that some extras of burnin need, and those that these need, by name."""
    wanted, found = project(), dict[str, metadata.Distribution]()
    seen: set[tuple[str, str]] = set()
    todo = [(Requirement(line), "") for extra in extras for line in wanted[extra]]
    while todo:
        requirement, given = todo.pop()
        name = canonicalize_name(requirement.name)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": given}):
            continue
        if name == "burnin":
            todo += [(Requirement(line), "") for extra in requirement.extras for line in wanted[extra]]
            continue
        dist = metadata.distribution(name)
        found[name] = dist
        for extra in ("", *requirement.extras):
            if (name, extra) not in seen:
                seen.add((name, extra))
                todo += [(Requirement(line), extra) for line in dist.requires or ()]
    return found


def pins(path: Path = ROOT / "constraints.txt") -> dict[str, str]:
    """The versions of constraints.txt, by name."""
    lines = [line.split("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines()]
    return {canonicalize_name(name): version for name, _, version in (x.partition("==") for x in lines if x)}


def unpinned() -> list[str]:
    """What `make setup` installs and constraints.txt does not pin, or otherwise than it is installed."""
    pinned, wrong = pins(), []
    for name, dist in sorted(closure(["", "dev", "build"]).items()):
        version = dist.version.partition("+")[0]
        if name not in pinned:
            wrong.append(f"{name}=={version} is installed and not pinned in constraints.txt")
        elif pinned[name] != version:
            wrong.append(f"{name}=={version} is installed, constraints.txt has {pinned[name]}")
    return wrong


def licence(dist: metadata.Distribution) -> str:
    """The licence that a package states; "unknown" where it states none."""
    about = dist.metadata
    if "License-Expression" in about:
        return about["License-Expression"]
    classes = [line.split(" :: ")[-1] for line in about.get_all("Classifier") or () if "License ::" in line]
    if classes:
        return " and ".join(SHORT.get(name, name) for name in classes)
    text = about["License"].strip().splitlines() if "License" in about else []
    return SHORT.get(text[0], text[0]) if text and len(text[0]) < 40 else "unknown"


def refused(stated: str) -> bool:
    """Whether a licence is unknown, or nothing but copyleft.

    Of alternatives (OR) one that is free is enough.
    """
    return not any(FREE.search(one) and not COPYLEFT.search(one) for one in stated.split(" OR "))


def licences() -> dict[str, tuple[str, str]]:
    """Of each package what it is for and its licence, by name."""
    told: dict[str, tuple[str, str]] = {}
    for extra, words in [*GROUPS.items(), ("dev", "development")]:
        for name, dist in sorted(closure([extra]).items()):
            told.setdefault(name, (words, licence(dist)))
    return told


def page() -> str:
    """docs/licences.md."""
    told, pinned = licences(), pins()
    lines = [
        "# Licences of dependencies",
        "",
        "burnin itself is under the MIT licence. What it needs, as each package states it in its metadata,",
        "at the versions of constraints.txt. `python tools/supply.py licences` writes this page; a test",
        "fails when a package states no licence, or none but a copyleft one (GPL, AGPL).",
        "",
        "| package | version | for | licence |",
        "|---|---|---|---|",
    ]
    order = [*GROUPS.values(), "development"]
    for name, (words, stated) in sorted(told.items(), key=lambda item: (order.index(item[1][0]), item[0])):
        lines.append(f"| {name} | {pinned.get(name, '')} | {words} | {stated} |")
    return "\n".join(lines) + "\n"


def pythons() -> list[str]:
    """Pinned packages of which the index has no wheel for a version of Python."""
    return [
        f"{name}=={pinned}: no wheel for Python {version} in this index"
        for version in PYTHONS
        for name, pinned in pins().items()
        if not _has_wheel(name, pinned, version)
    ]


def _has_wheel(name: str, pinned: str, version: str) -> bool:
    """Whether the index lists one; nothing is downloaded."""
    command = [sys.executable, "-m", "pip", "index", "versions", "--only-binary", ":all:"]
    done = subprocess.run(
        [*command, "--python-version", version, name], capture_output=True, text=True, check=False
    )
    listed = re.search(r"Available versions: (.*)", done.stdout)
    return listed is not None and pinned in [one.partition("+")[0] for one in listed[1].split(", ")]


def audit() -> list[str]:
    """Runs pip-audit on constraints.txt: what it found, and what it could not look up.

    pip-audit passes over a package that its source of vulnerabilities does not know, and ends as if all
    were well; here that is an error, so that nothing is taken for audited which was not.
    """
    command = [sys.executable, "-m", "pip_audit", "--no-deps", "--disable-pip", "--progress-spinner", "off"]
    done = subprocess.run(
        [*command, "--format", "json", "-r", str(ROOT / "constraints.txt")],
        capture_output=True,
        text=True,
        check=False,
    )
    if not done.stdout.strip():
        last = done.stderr.strip().splitlines()[-1:] or ["no output"]
        return [f"nothing was audited: pip-audit could not ask for known vulnerabilities ({last[0][:200]})"]
    return audited(json.loads(done.stdout))


def audited(found: Mapping[str, Any]) -> list[str]:
    """What pip-audit's JSON says is wrong, or was not looked up."""
    packages = found["dependencies"]
    skipped = [one["name"] for one in packages if "skip_reason" in one]
    wrong = [
        f"{one['name']} {one['version']}: {vulnerability['id']}"
        for one in packages
        for vulnerability in one.get("vulns", ())
    ]
    if skipped:
        wrong.append(f"{len(skipped)} of {len(packages)} packages were not audited: {', '.join(skipped)}")
    return wrong


def main() -> None:
    """Does what is asked for; what is wrong goes to stderr, with exit code 1."""
    asked = sys.argv[1] if len(sys.argv) == 2 else ""
    if asked == "licences":
        PAGE.write_text(page(), encoding="utf-8")
        wrong = [f"{name}: {stated}" for name, (_, stated) in licences().items() if refused(stated)]
    elif asked in ("pins", "pythons", "audit"):
        wrong = {"pins": unpinned, "pythons": pythons, "audit": audit}[asked]()
    else:
        wrong = ["usage: python tools/supply.py pins | licences | pythons | audit"]
    for line in wrong:
        print(line, file=sys.stderr)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
