"""Files from the network: fetched to a temporary name, checked against a checksum, unpacked safely."""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zlib
from pathlib import Path

from burnin.core import InputError, Report
from burnin.limits import brief

OFFLINE_VARIABLE = "BURNIN_OFFLINE"
TIMEOUT = 10.0
"""Seconds without an answer or without a byte, after which a download is given up."""
DAMAGED = (tarfile.TarError, EOFError, zlib.error, OSError, ValueError, KeyError, RecursionError)
"""What reading a damaged archive ends in."""
BLOCK = 1 << 20
MOST_UNPACKED, MOST_MEMBERS = 20, 1_000_000
"""How many times larger an archive may be unpacked, and of how many files: pictures hardly pack at all."""


def offline() -> bool:
    """Whether BURNIN_OFFLINE says that nothing is to be downloaded."""
    return os.environ.get(OFFLINE_VARIABLE, "").lower() not in ("", "0", "false", "no")


def fetch_file(
    address: str, target: Path, md5: str, *, report: Report | None = None, timeout: float = TIMEOUT
) -> None:
    """Downloads a file; it has its name only when it is whole and has the checksum.

    Arguments:
        address: where it is.
        target: where it goes; its folder is made.
        md5: its checksum as its publishers give it, in hexadecimal digits.
        report: told how many kB have come, and of how many; without one, a line on stderr says what comes.
        timeout: seconds without an answer or a byte, after which it is given up.

    Raises:
        InputError: without a network, when the transfer is cut off, or when the checksum is another.
    """
    told = _say if report is None else report
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        found = _transfer(address, part, told, timeout)
        if found != md5:
            raise InputError(f"{address} is another file than expected (md5 {found}, wanted {md5})")
        part.replace(target)
    except (OSError, http.client.HTTPException) as error:  # URLError and timeouts are OSErrors
        raise InputError(f"{address} cannot be downloaded ({_reason(error)})") from error
    finally:
        part.unlink(missing_ok=True)


def file_md5(path: Path) -> str:
    """The MD5 checksum of a file.

    Example:
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = (Path(folder) / "empty").write_bytes(b"")
        ...     file_md5(Path(folder) / "empty")
        'd41d8cd98f00b204e9800998ecf8427e'
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, _md5).hexdigest()


def unpack(archive: Path, folder: Path) -> None:
    """Unpacks a .tar.gz file into a folder, beside and over what is there; nothing is written elsewhere.

    Raises:
        InputError: when the archive is damaged or cut short, or has members that lead out of the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".unpacking-") as temporary:
        try:
            with tarfile.open(archive, "r:gz") as tar:
                tar.extractall(temporary, filter=_Within(archive))
            _move(Path(temporary), folder)
        except tarfile.FilterError as error:
            raise InputError(f"{archive}: refused: {brief(error)}") from error
        except InputError as error:
            raise InputError(f"{archive}: {error}") from None
        except DAMAGED as error:
            raise InputError(
                f"{archive}: damaged or cut short ({brief(error)}): remove it and get it anew"
            ) from error


def _move(unpacked: Path, folder: Path) -> None:
    """All that is in one folder into another, beside and over what is there."""
    for made in unpacked.iterdir():
        target = folder / made.name
        if made.is_dir() and target.is_dir():
            shutil.copytree(made, target, dirs_exist_ok=True)
        else:
            made.replace(target)


class _Within:
    """Lets members of an archive pass that stay in its folder, while they are not far larger than it is."""

    def __init__(self, archive: Path) -> None:
        self.left = MOST_UNPACKED * archive.stat().st_size + BLOCK
        self.members = 0

    def __call__(self, member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo | None:
        self.left -= member.size
        self.members += 1
        if self.left < 0 or self.members > MOST_MEMBERS:
            raise InputError(
                f"refused: it unpacks to more than {MOST_UNPACKED} times its size, or {MOST_MEMBERS} files"
            )
        return tarfile.data_filter(member, folder)


def _transfer(address: str, part: Path, report: Report, timeout: float) -> str:
    """Writes what comes from the address to a file; its checksum."""
    request = urllib.request.Request(address, headers={"User-Agent": "burnin"})
    what, digest, done = f"{address.rsplit('/', 1)[-1]}, kB", _md5(), 0
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        length = answer.headers.get("Content-Length")
        total = int(length) if length is not None and length.isdecimal() else None
        report(what, 0, (total or 0) // 1000)
        part.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            while block := answer.read(BLOCK):
                file.write(block)
                digest.update(block)
                done += len(block)
                report(what, done // 1000, (total or done) // 1000)
    if total is not None and done != total:
        raise InputError(f"{address} was cut off after {done} of {total} bytes: try again")
    return digest.hexdigest()


def _md5() -> hashlib._Hash:
    return hashlib.md5(usedforsecurity=False)


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code} {error.reason}"
    if isinstance(error, urllib.error.URLError):
        return str(error.reason)
    return str(error) or type(error).__name__


def _say(what: str, done: int, total: int) -> None:
    """A line when something begins."""
    if done == 0:
        print(f"burnin: downloading {what.removesuffix(', kB')} ({total} kB)", file=sys.stderr)
