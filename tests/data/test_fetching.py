"""Downloads, from a server of the test's own: whole or not at all, and archives that stay in their folder."""

from __future__ import annotations

import hashlib
import io
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from burnin.core import InputError
from burnin.data.fetching import fetch_file, file_md5, offline, unpack
from tests.data.serving import Served, serve

CONTENT = bytes(range(256)) * 10_000
MD5 = hashlib.md5(CONTENT).hexdigest()


@pytest.fixture
def server() -> Iterator[Served]:
    with serve({"pictures.gz": CONTENT}) as served:
        yield served


def write_tar(path: Path, members: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def test_a_file_comes_whole(server: Served, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    target = tmp_path / "deep" / "pictures.gz"
    fetch_file(server.address + "pictures.gz", target, MD5, report=lambda *said: told.append(said))
    assert target.read_bytes() == CONTENT
    assert file_md5(target) == MD5
    assert told[0] == ("pictures.gz, kB", 0, 2560)
    assert told[-1] == ("pictures.gz, kB", 2560, 2560)
    assert len(told) > 2, "along the way, too"
    assert list(target.parent.iterdir()) == [target]


def test_without_a_report_a_line_says_so(
    server: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fetch_file(server.address + "pictures.gz", tmp_path / "pictures.gz", MD5)
    assert capsys.readouterr().err == "burnin: downloading pictures.gz (2560 kB)\n"


def test_another_file_than_expected_is_not_kept(server: Served, tmp_path: Path) -> None:
    target = tmp_path / "pictures.gz"
    target.write_bytes(b"what was there before")
    with pytest.raises(InputError, match=rf"another file than expected \(md5 {MD5}, wanted 00"):
        fetch_file(server.address + "pictures.gz", target, "00" * 16)
    assert target.read_bytes() == b"what was there before"
    assert list(tmp_path.iterdir()) == [target]


def test_a_transfer_that_is_cut_off_leaves_nothing(server: Served, tmp_path: Path) -> None:
    server.cut = 1000
    with pytest.raises(InputError, match=r"pictures.gz was cut off after 1000 of 2560000 bytes"):
        fetch_file(server.address + "pictures.gz", tmp_path / "pictures.gz", MD5)
    assert list(tmp_path.iterdir()) == []


def test_a_server_without_the_file_or_an_answer_or_at_all(server: Served, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"other.gz cannot be downloaded \(HTTP 404 Not Found\)"):
        fetch_file(server.address + "other.gz", tmp_path / "other.gz", MD5)
    server.wait = 1.0
    began = time.monotonic()
    with pytest.raises(InputError, match=r"cannot be downloaded \(timed out\)"):
        fetch_file(server.address + "pictures.gz", tmp_path / "pictures.gz", MD5, timeout=0.1)
    assert time.monotonic() - began < 1.0
    with pytest.raises(InputError, match=r"cannot be downloaded \(.*refused"):
        fetch_file("http://127.0.0.1:9/pictures.gz", tmp_path / "pictures.gz", MD5)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("said", "means"), [("1", True), ("yes", True), ("", False), ("0", False), ("no", False)]
)
def test_offline(monkeypatch: pytest.MonkeyPatch, said: str, means: bool) -> None:
    monkeypatch.setenv("BURNIN_OFFLINE", said)
    assert offline() is means


def test_an_archive_is_unpacked_beside_and_over_what_is_there(tmp_path: Path) -> None:
    write_tar(tmp_path / "a.tgz", {"batches/one": b"1", "batches/two": b"2", "readme": b"r"})
    folder = tmp_path / "data"
    (folder / "batches").mkdir(parents=True)
    (folder / "batches" / "one").write_bytes(b"damaged")
    (folder / "batches" / "own").write_bytes(b"own")
    unpack(tmp_path / "a.tgz", folder)
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert found == {"batches/one": b"1", "batches/two": b"2", "batches/own": b"own", "readme": b"r"}


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside-of-the-folder", "a/../../outside"])
def test_an_archive_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    write_tar(tmp_path / "a.tgz", {"inside": b"1", name: b"2"})
    folder = tmp_path / "data" / "deep"
    if name.startswith("/"):  # without its slash it is inside
        unpack(tmp_path / "a.tgz", folder)
        assert (folder / name.lstrip("/")).read_bytes() == b"2"
        assert not Path(name).exists()
        return
    with pytest.raises(InputError, match=r"a.tgz: refused: .*outside"):
        unpack(tmp_path / "a.tgz", folder)
    assert list((tmp_path / "data").rglob("*")) == [folder]


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    archive, folder = tmp_path / "a.tgz", tmp_path / "data"
    write_tar(archive, {"batches/one": bytes(range(256)) * 100})
    for content in (b"", b"no archive", archive.read_bytes()[:-60]):
        archive.write_bytes(content)
        with pytest.raises(InputError, match=r"a.tgz: damaged or cut short"):
            unpack(archive, folder)
        assert list(folder.iterdir()) == []
