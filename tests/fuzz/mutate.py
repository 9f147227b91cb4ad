"""Valid files changed at random: byte by byte, word by word, and by what their formats are made of."""

from __future__ import annotations

import gzip
import io
import json
import random
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

Change = Callable[[bytes, random.Random], bytes]
"""A changed file; the same for the same state of the generator."""
SIZES = (
    0,
    1,
    2,
    3,
    127,
    128,
    255,
    256,
    2**15,
    2**16 - 1,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**62,
    2**63 - 1,
    2**64 - 1,
)
WORDS = (
    *(
        "nan",
        "inf",
        "-inf",
        "1e999",
        "-0.0",
        "1e-320",
        "9" * 400,
        "0x10",
        "1_000",
        "true",
        "none",
        "null",
        "",
    ),
    *(
        "../../../etc/passwd",
        "/etc/passwd",
        "C:\\x",
        "\x00",
        "\ufeff",
        "\ud7ff",
        "é",
        "\U0001f600",
        "\x1b[2J",
    ),
    *(
        "<script>alert(1)</script>",
        "'",
        '"',
        '"""',
        "[",
        "]",
        "[[",
        "{",
        "}",
        "=",
        ".",
        ",",
        ";",
        "\n",
        "\r\n",
        "#",
    ),
    *(
        "rings",
        "base",
        "data",
        "file",
        "temperature",
        "1",
        "-1",
        "0",
        "3.5",
        "10000000000",
        "=1\n",
        "a.b.c.d",
    ),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**63, 2**70, 10**300, 0.5, -0.0, 1e308, 5e-324, float("nan")),
    *(
        float("inf"),
        "",
        "x",
        "x" * 3000,
        "../../etc/passwd",
        "/etc/passwd",
        "<script>alert(1)</script>",
        "é\x00\x1b",
    ),
    *([], {}, [[]], [None], {"": 0}, [1, 2, 3], [[1.0, 2.0]], ["a", 1], {"x": {"y": [{}]}}, [0.0] * 500),
)
TOML = (
    *(
        "0",
        "1",
        "-1",
        "2",
        "3",
        "1000000",
        "1000000000",
        "999999999999",
        "0.0",
        "0.5",
        "1e300",
        "1e-300",
        "nan",
    ),
    *(
        "inf",
        "true",
        "false",
        '""',
        '"x"',
        '"mala"',
        '"hmc"',
        '"convnet"',
        '"persistent"',
        '"SGD"',
        '"LBFGS"',
        "[]",
    ),
    *(
        '"../../etc/passwd"',
        "[[0, 1.0]]",
        "[[0, 1e300], [1, 1e-300]]",
        "[1, 2, 3]",
        '"rbm"',
        '"ica"',
        '"lsd"',
    ),
)
DEEP = "[" * 5000 + "]" * 5000


def octets(content: bytes, stream: random.Random) -> bytes:
    """One to a few changes of bytes, anywhere."""
    data = bytearray(content)
    for _ in range(stream.choice((1, 1, 1, 2, 4))):
        place = stream.randrange(len(data) + 1)
        kind = stream.randrange(8)
        if kind == 0 and place < len(data):
            data[place] ^= 1 << stream.randrange(8)
        elif kind == 1 and place < len(data):
            data[place] = stream.choice((0, 1, 127, 128, 255, stream.randrange(256)))
        elif kind == 2:
            del data[place : place + stream.choice((1, 2, 8, 64, 4096))]
        elif kind == 3:
            data[place:place] = stream.randbytes(stream.choice((1, 2, 8, 64)))
        elif kind == 4:
            del data[place:]
        elif kind == 5:
            start = stream.randrange(len(data) + 1)
            data[place:place] = data[start : start + stream.choice((1, 16, 256))]
        else:
            width, order = stream.choice((1, 2, 4, 8)), stream.choice(("little", "big"))
            size = stream.choice(SIZES) & (256**width - 1)
            data[place : place + width] = size.to_bytes(width, order)
    return bytes(data)


def words(content: bytes, stream: random.Random) -> bytes:
    """Text with cells, lines and signs exchanged."""
    if stream.random() < 0.2:
        return octets(content, stream)
    lines = content.decode("utf-8", "surrogateescape").split("\n")
    for _ in range(stream.choice((1, 1, 2, 3))):
        place = stream.randrange(len(lines))
        line, kind = lines[place], stream.randrange(6)
        if kind == 0:
            lines.insert(place, stream.choice(lines))
        elif kind == 1 and len(lines) > 1:
            del lines[place]
        elif kind == 2:
            cut = stream.randrange(len(line) + 1)
            lines[place] = line[:cut] + stream.choice(WORDS) + line[cut:]
        elif kind == 3:
            key, sign, _ = line.partition(stream.choice((" = ", ",", ":", ".")))
            lines[place] = key + sign + stream.choice(WORDS)
        elif kind == 4:
            lines[place] = line.replace(
                stream.choice(line or " "), stream.choice(WORDS), stream.choice((1, -1))
            )
        else:
            lines[place] = line * stream.choice((2, 3, 40))
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def settings(content: bytes, stream: random.Random) -> bytes:
    """TOML with the values of some keys exchanged: mostly valid, and so carried further."""
    lines = content.decode().split("\n")
    keys = [place for place, line in enumerate(lines) if " = " in line]
    for place in stream.sample(keys, stream.choice((1, 1, 2, 3))):
        key, _, old = lines[place].partition(" = ")
        others = [lines[other].partition(" = ")[2] for other in keys]
        new = stream.choice((*TOML, *others, f"[{old}]", f"-{old}", f"{old}0000000000", old.strip("[]")))
        lines[place] = f"{key} = {new}"
    return "\n".join(lines).encode()


def value_in(tree: Any, stream: random.Random) -> Any:
    """JSON with one node exchanged, left out, added or put one deeper."""
    tree = json.loads(json.dumps(tree))
    holders: list[Any] = []
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, dict | list) and node:
            holders.append(node)
            left += node.values() if isinstance(node, dict) else node[:20]
    if not holders or stream.random() < 0.01:
        return stream.choice(VALUES)
    holder = stream.choice(holders)
    key: Any = stream.choice(list(holder)) if isinstance(holder, dict) else stream.randrange(len(holder))
    kind = stream.randrange(6)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[stream.choice((*holder, "x", "", "__class__"))] = holder[key]
    elif kind == 2:
        holder[key] = stream.choice(([holder[key]], {"x": holder[key]}, str(holder[key])))
    else:
        holder[key] = stream.choice(VALUES)
    return tree


def json_text(content: bytes, stream: random.Random) -> bytes:
    """JSON changed as a tree, or as text."""
    kind = stream.random()
    if kind < 0.15:
        return words(content, stream)
    if kind < 0.16:
        return content.replace(b":", b":" + DEEP.encode() + b",", 1)
    tree = json.loads(content)
    for _ in range(stream.choice((1, 1, 2))):
        tree = value_in(tree, stream)
    return json.dumps(tree, ensure_ascii=stream.random() < 0.5).encode("utf-8", "surrogatepass")


def safetensors_file(content: bytes, stream: random.Random) -> bytes:
    """The head's length, the head as JSON, or the numbers."""
    size = int.from_bytes(content[:8], "little")
    head, rest, kind = content[8 : 8 + size], content[8 + size :], stream.randrange(4)
    if kind == 0:
        return octets(content, stream)
    if kind == 1:
        return stream.choice(SIZES).to_bytes(8, "little") + head + rest
    tree = json.loads(head)
    if kind == 2:
        name = stream.choice([name for name in tree if name != "__metadata__"])
        part = tree[name]
        spot = stream.choice(("dtype", "shape", "data_offsets"))
        if spot == "dtype":
            part["dtype"] = stream.choice(
                ("F64", "I8", "BOOL", "F8_E4M3", "F8_E8M0", "F4", "C64", "U64", "X", 3)
            )
        else:
            place = stream.randrange(len(part[spot]) + 1)
            part[spot][place : place + stream.randrange(2)] = [stream.choice((*SIZES, -1, len(rest)))]
    else:
        tree = value_in(tree, stream)
    changed = json.dumps(tree).encode()
    return len(changed).to_bytes(8, "little") + changed + rest


def npy_file(content: bytes, stream: random.Random) -> bytes:
    """The head of a .npy file: its kind of numbers, order, shape."""
    if stream.random() < 0.4:
        return octets(content, stream)
    size = int.from_bytes(content[8:10], "little")
    head, rest = content[10 : 10 + size].decode("latin1"), content[10 + size :]
    kinds = (
        "'|O'",
        "'<f2'",
        "'<f8'",
        "'<U9'",
        "'|V8'",
        "'<M8[s]'",
        "[('a', '<f8')]",
        "'<c16'",
        "'|S0'",
        "'>f8'",
        "3",
    )
    shapes = (
        "()",
        "(1,)",
        "(-1, 2)",
        "(4294967296, 4294967296)",
        "(0, 3)",
        "(9223372036854775807,)",
        "(2, 3.5)",
    )
    before = head.partition("'shape': ")[0]
    changed = stream.choice(
        (
            head.replace(head.split("'descr': ")[-1].split(",")[0], stream.choice(kinds), 1),
            before + "'shape': " + stream.choice(shapes) + ", }",
            head.replace("False", stream.choice(("True", "None", "7"))),
            words(head.encode("latin1"), stream).decode("latin1"),
            "(" * 900,
            "-" * 9000,
        )
    ).encode("latin1", "replace")
    return content[:8] + (len(changed) & 0xFFFF).to_bytes(2, "little") + changed + rest


def zipped(inner: Change) -> Change:
    """A .npz file: the archive's own bytes, or a member changed by `inner` and packed anew."""

    def change(content: bytes, stream: random.Random) -> bytes:
        if stream.random() < 0.4:
            return octets(content, stream)
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            held = {name: archive.read(name) for name in archive.namelist()}
        name = stream.choice(list(held))
        held[name] = inner(held[name], stream)
        if stream.random() < 0.1:
            held[stream.choice(("../x.npy", "x", "/etc/x.npy", name + "2"))] = held.pop(name)
        if stream.random() < 0.02:
            held[name] = bytes(10**7)
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w", stream.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
            for key, value in held.items():
                archive.writestr(key, value)
        return made.getvalue()

    return change


def gzipped(inner: Change) -> Change:
    """A .gz file: its own bytes, or its content changed and packed anew."""

    def change(content: bytes, stream: random.Random) -> bytes:
        if stream.random() < 0.4:
            return octets(content, stream)
        made = inner(gzip.decompress(content), stream)
        more = bytes(10**7) if stream.random() < 0.01 else b""
        return gzip.compress(made + more, compresslevel=1)

    return change


def idx_file(content: bytes, stream: random.Random) -> bytes:
    """The head of an IDX file."""
    if stream.random() < 0.4:
        return octets(content, stream)
    place = 4 * stream.randrange(4)
    size = struct.pack(">I", stream.choice(SIZES) & 0xFFFFFFFF)
    return (
        content[:place]
        + (bytes([0, 0, 8, stream.randrange(256)]) if place == 0 else size)
        + content[place + 4 :]
    )


def png_file(content: bytes, stream: random.Random) -> bytes:
    """A chunk of a .png file, its checksum made right."""
    if stream.random() < 0.3:
        return octets(content, stream)
    chunks, place = [], 8
    while place < len(content):
        size = int.from_bytes(content[place : place + 4], "big")
        chunks.append((content[place + 4 : place + 8], content[place + 8 : place + 8 + size]))
        place += 12 + size
    which = stream.randrange(len(chunks))
    kind, data = chunks[which]
    extra = (b"PLTE", b"tRNS", b"eXIf", b"iCCP", b"acTL", b"fcTL", b"zTXt", b"gAMA")
    if stream.random() < 0.3:
        chunks.insert(which, (stream.choice(extra), stream.randbytes(stream.randrange(40))))
    elif kind == b"IDAT" and stream.random() < 0.5:
        chunks[which] = kind, zlib.compress(octets(zlib.decompress(data), stream) if data else b"")
    else:
        chunks[which] = stream.choice((kind, kind, *extra)), octets(data, stream)
    parts = [len(d).to_bytes(4, "big") + k + d + zlib.crc32(k + d).to_bytes(4, "big") for k, d in chunks]
    return content[:8] + b"".join(parts)


def tar_file(content: bytes, stream: random.Random) -> bytes:
    """An archive with a member that has another name, kind or size, or damaged bytes."""
    if stream.random() < 0.4:
        return gzipped(octets)(content, stream)
    made = io.BytesIO()
    names = (
        "../up.txt",
        "/tmp/burnin-fuzz-outside",
        "a/../../b",
        "x" * 300,
        "",
        ".",
        "a\x00b",
        "folder/file",
        "é\ud7ff",
    )
    kinds = (
        tarfile.REGTYPE,
        tarfile.SYMTYPE,
        tarfile.LNKTYPE,
        tarfile.DIRTYPE,
        tarfile.CHRTYPE,
        tarfile.FIFOTYPE,
    )
    with tarfile.open(fileobj=made, mode="w:gz", compresslevel=1) as archive:
        for _ in range(stream.randrange(1, 4)):
            member = tarfile.TarInfo(stream.choice(names))
            member.type, member.linkname = stream.choice(kinds), stream.choice(names)
            member.size = stream.choice((0, 10, 4096)) if member.type == tarfile.REGTYPE else 0
            member.mode = stream.choice((0, 0o644, 0o4777, 0o777))
            archive.addfile(member, io.BytesIO(bytes(member.size)))
    return made.getvalue()


PICKLED = (
    b"cos\nsystem\n",
    b"(S'ls'\ntR",
    b"r\xff\xff\xff\xff",
    b"\x96" + b"\xff" * 4 + b"\0" * 4,
    b"\x8c\x02os",
)


def pickle_file(content: bytes, stream: random.Random) -> bytes:
    """A pickle with instructions put in."""
    if stream.random() < 0.5:
        return octets(content, stream)
    # At its beginning and end, where the instructions are; the middle is pixels.
    place = stream.choice((stream.randrange(200), len(content) - stream.randrange(200)))
    more = stream.choice(
        (*PICKLED, b"(", b"t", b"R", b"b", b"e", b"u", b"s", b".", b"2", b"0", b"h\x00", b"}", b"]")
    )
    return content[:place] + more + content[place + stream.randrange(3) :]
