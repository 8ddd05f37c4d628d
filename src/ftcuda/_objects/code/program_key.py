"""The key of what a program becomes: a digest of all that decides on it."""

import os
import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

VERSION = "ftcuda program 1"  # changes whenever what is kept under a key does

# Options, as NVRTC has them, that do more than to make an image, which they would not when it is found.
EFFECTS = re.compile(r"--(create-pch|time|fdevice-time-trace)=")
# Options that have NVRTC read other files than those of CUDA.
READS = re.compile(r"--(include-path|pre-include|use-pch|pch-dir)=|--pch$")
# A line that goes on in the next; then words and texts, in which nothing is a comment, and comments.
SPLICE = re.compile(rb"\\\r?\n")
TOKENS = re.compile(
    rb"""(?:u8|[uUL])?R"([^()\\\s]{0,16})\(.*?\)\1"|[A-Za-z_]\w*|\.?\d(?:'?\w|\.)*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'"""
    rb"""|(?P<comment>//[^\n]*|/\*.*?\*/)""",
    re.DOTALL,
)
# What has NVRTC look for a file, and the file where it is one of CUDA's: by a path from the folders of its headers.
LOOKS = re.compile(
    rb"(?:#|%:|\?\?=)[ \t\f\v\r]*(?:include|include_next|embed)\b[ \t\f\v\r]*"
    rb"|\b__has_(?:include|include_next|embed)\b[ \t\f\v\r]*\(?[ \t\f\v\r]*"
)
IN_FOLDERS = rb"(?!\.\.?/)[\w.+-]+(?:/(?!\.\.?/)[\w.+-]+)*"
OF_CUDA = re.compile(rb"<" + IN_FOLDERS + rb">")
BY_NAME = re.compile(rb'<' + IN_FOLDERS + rb'>|"' + IN_FOLDERS + rb'"')
TIMES = re.compile(rb"\b__(?:DATE|TIME|TIMESTAMP)__\b")

FILES = (
    "their contents are not in the key. Make one with utils.make_program_cache_key(extra_digest=...) of what NVRTC "
    "will read, and keep the object code under it"
)


def key_of(
    program: Any, target: str, arch: str, names: Sequence[str], compiler: tuple[int, int], headers: Iterable[str],
    extra_digest: bytes | None, kept: Iterable[str],
) -> bytes:  # fmt: skip
    """ValueError if more than these arguments decides on what the program becomes. `kept`: options of other programs
    that NVRTC has kept."""
    if extra_digest is not None and not isinstance(extra_digest, bytes | bytearray | memoryview):
        raise TypeError(f"extra_digest must be bytes, not {type(extra_digest).__name__}")
    for option in program._arguments:
        if EFFECTS.match(option):
            raise ValueError(f"cannot cache a program with {option}: what is found is not compiled, and writes no file")
    if extra_digest is None:
        refuse_files(program)
    texts = [
        VERSION, target, arch, f"{program.backend} {compiler[0]}.{compiler[1]}", program._name,
        *labelled("option", program._arguments), *labelled("name", sorted(names)),
        *labelled("headers", map(stamp, headers)), *labelled("kept", sorted(set(kept) - set(program._arguments))),
    ]  # fmt: skip
    encoded = [each.encode("utf-8", "surrogateescape") for each in texts]
    return digest(program._source, bytes(extra_digest or b""), *encoded)


def refuse_files(program: Any) -> None:
    """NVRTC must read none but the source and those of CUDA, and no clock."""
    for option in program._arguments:
        if READS.match(option):
            raise ValueError(f"cannot cache a program with {option}: {FILES}")
    looks_beside = "--no-source-include" not in program._arguments
    if looks_beside and os.path.basename(program._name) != program._name:
        where = "which NVRTC looks for beside the source"
        raise ValueError(f"cannot cache the program {program._name!r} in another folder, with headers {where}: {FILES}")
    for text in (without_comments(program._source), *macros(program._arguments)):
        for found in LOOKS.finditer(text):
            if not (OF_CUDA if looks_beside else BY_NAME).match(text, found.end()):
                line = text[found.start() :].partition(b"\n")[0].strip().decode("utf-8", "replace")
                raise ValueError(f"cannot cache a program with '{line}', which may read a file of yours: {FILES}")
        if found := TIMES.search(text):
            raise ValueError(
                f"cannot cache a program with {found[0].decode()}: what is found has that of its compilation. If that "
                "is meant, make a key with utils.make_program_cache_key(extra_digest=...)"
            )


def without_comments(source: bytes) -> bytes:
    """What the preprocessor sees."""
    return TOKENS.sub(lambda found: b" " if found["comment"] else found[0], SPLICE.sub(b"", source))


def macros(options: Iterable[str]) -> Iterable[bytes]:
    """What options have it see."""
    return [each.encode("utf-8", "surrogateescape") for each in options if each.startswith("--define-macro=")]


def labelled(label: str, items: Iterable[str]) -> list[str]:
    """So that the end of one list is not the begin of the next."""
    return [f"{label} {each}" for each in items]


def stamp(folder: str) -> str:
    """Of a folder with headers of CUDA: other versions have other files."""
    found = []
    for name in ("cuda_fp16.h", "cuda_runtime_api.h", "nv/target"):
        try:
            stat = os.stat(os.path.join(folder, name))
        except OSError:
            continue
        found.append(f"{name} {stat.st_size} {stat.st_mtime_ns}")
    return f"{folder}: {', '.join(found)}"


def digest(*parts: bytes) -> bytes:
    """Of several parts, each with its length."""
    made = sha256()
    for part in parts:
        made.update(len(part).to_bytes(8, "little"))
        made.update(part)
    return made.digest()
