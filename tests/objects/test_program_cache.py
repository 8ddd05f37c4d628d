"""Caches of compiled programs: found again or compiled once, by threads and processes; nothing wrong is found."""

import os
import pickle
import threading
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from ftcuda import (
    CUDAWarning,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    NVRTCError,
    ObjectCode,
    Program,
    ProgramOptions,
    launch,
)
from ftcuda._objects.code.file_lock import HELD, file_lock
from ftcuda.testing import together
from ftcuda.utils import FileStreamProgramCache, InMemoryProgramCache, ProgramCacheResource, make_program_cache_key
from stress import program_cache as stress_program_cache

pytestmark = pytest.mark.thread_unsafe(reason="makes threads of its own, and counts what is in its folder")

ONE = LaunchConfig(grid=1, block=1)
SOURCE = 'extern "C" __global__ void seven(int* place) { *place = 7; }'
TEMPLATE = "template <class T> __global__ void store(T* place, T value) { *place = value; }"


class OfUser(ProgramCacheResource):
    """What a program may bring: the five methods, without __init__ of the class below."""

    def __init__(self):
        self.values = {}

    def __getitem__(self, key):
        return self.values[key]

    def __setitem__(self, key, value):
        self.values[key] = value

    def __delitem__(self, key):
        del self.values[key]

    def __len__(self):
        return len(self.values)

    def clear(self):
        self.values.clear()


class Log:
    """Counts compilations: who finds a program gets no messages."""

    def __init__(self):
        self.count = 0

    def write(self, text):
        self.count += 1


@pytest.fixture(params=["memory", "files"])
def cache(request, tmp_path):
    with InMemoryProgramCache() if request.param == "memory" else FileStreamProgramCache(tmp_path / "cache") as made:
        yield made


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache"


def entries(folder):
    return sorted((folder / "entries").rglob("*-*"))


def runs(code, stream, name="seven", *more):
    """What its kernel writes."""
    place = LegacyPinnedMemoryResource().allocate(4)
    launch(stream, ONE, code.get_kernel(name), place, *more)
    stream.sync()
    return int(np.frombuffer(place, np.int32)[0])


def test_a_mapping(cache):
    code = ObjectCode.from_ptx(b".version 8.0\n.target sm_80\n")
    assert len(cache) == 0 and cache.get("a") is None and cache.get("a", b"x") == b"x"
    cache["a"] = b"first"
    cache[b"a"] = bytearray(b"second")  # the same key
    cache.update({"b": memoryview(b"third")})
    cache.update([("c", code)])
    assert len(cache) == 3 and cache["a"] == b"second" and cache.get(b"b") == b"third" and cache["c"] == code.code
    del cache["b"]
    for gone in (lambda: cache["b"], lambda: cache.__delitem__("b")):
        with pytest.raises(KeyError, match="b"):
            gone()
    cache["empty"] = b""
    assert cache["empty"] == b""
    cache.clear()
    assert len(cache) == 0
    for wrong in (lambda: cache[3], lambda: cache.__setitem__(None, b"")):
        with pytest.raises(TypeError, match="keys of a program cache must be bytes or str"):
            wrong()
    with pytest.raises(TypeError, match="values of a program cache must be bytes-like or ObjectCode, not str"):
        cache["a"] = "text"
    with pytest.raises(TypeError):
        assert "a" in cache


def test_the_image_of_a_file_that_is_gone(cache, tmp_path):
    path = tmp_path / "code.ptx"
    path.write_bytes(b".version 8.0\n.target sm_80\n")
    code = ObjectCode.from_ptx(path)
    path.unlink()
    cache["a"] = code
    assert cache["a"].startswith(b".version 8.0")


@pytest.mark.parametrize("kind", [InMemoryProgramCache, FileStreamProgramCache])
def test_the_size_is_bounded(kind, folder):
    arguments = [folder] if kind is FileStreamProgramCache else []
    cache = kind(*arguments, max_size_bytes=100)
    for index in range(3):
        cache[f"{index}"] = bytes([index]) * 33
        until_later()
    assert cache["0"]  # is read, and so newer than "1"
    until_later()
    cache["3"] = bytes(33)
    assert [cache.get(f"{index}") is not None for index in range(4)] == [True, False, True, True]
    for key in ("large", "0"):
        cache[key] = bytes(101)
    assert [cache.get(key) is not None for key in ("large", "0", "2", "3")] == [False, False, True, True]
    for wrong, error in ((0, ValueError), (-1, ValueError), (1.5, TypeError), (True, TypeError)):
        with pytest.raises(error, match="max_size_bytes"):
            kind(*arguments, max_size_bytes=wrong)


def until_later():
    """Times of files have the resolution of the system's clock."""
    begun = time.time_ns()
    while time.time_ns() - begun < 20_000_000:
        threading.Event().wait(0.005)


def test_entries_are_files_that_other_tools_read(folder):
    cache = FileStreamProgramCache(folder)
    cache["a"] = b"\x7fELF..."
    (path,) = entries(folder)
    assert path.read_bytes() == b"\x7fELF..." and FileStreamProgramCache(folder)["a"] == b"\x7fELF..."
    assert list((folder / "tmp").iterdir()) == []


@pytest.mark.parametrize("how", ["cut", "changed", "of another key", "empty"])
def test_a_wrong_entry_is_missing(folder, how):
    """Mutant: without the digest it is found."""
    cache = FileStreamProgramCache(folder)
    cache["a"], cache["b"] = b"image of a", b"image of b"
    path, other = (next(each for each in entries(folder) if each.read_bytes() == image) for image in (b"image of a", b"image of b"))
    if how == "of another key":
        other.rename(path.parent / f"{path.name[:65]}{other.name[65:]}")
        path.unlink()
    else:
        path.write_bytes({"cut": b"image", "changed": b"image of c", "empty": b""}[how])
    assert cache.get("a") is None
    assert not [each for each in entries(folder) if each.name[:64] == path.name[:64]]  # and is gone
    cache["a"] = b"image of a"
    assert cache["a"] == b"image of a"


def test_what_others_leave_in_the_folder(folder):
    cache = FileStreamProgramCache(folder)
    cache["a"] = b"image"
    (path,) = entries(folder)
    (path.parent / "notes.txt").write_text("not an entry")
    (path.parent / f"{path.name[:64]}-{'0' * 64}").mkdir()
    (folder / "entries" / "file").write_text("not a folder")
    draft, old = folder / "tmp" / "draft", folder / "tmp" / "old"
    draft.touch()
    old.touch()
    os.utime(old, (0, 0))
    assert FileStreamProgramCache(folder)["a"] == b"image"
    assert draft.exists() and not old.exists()
    cache.clear()
    assert (path.parent / "notes.txt").exists() and cache.get("a") is None


def test_a_full_disk(folder, device, monkeypatch, ptx_fits):
    """What was there stays; a program is compiled all the same, with a warning."""
    cache = FileStreamProgramCache(folder)
    cache["a"] = b"first"

    def full(source, target):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        with pytest.raises(OSError, match="No space left"):
            cache["a"] = b"second"
        with pytest.warns(CUDAWarning, match="cannot keep <ObjectCode .* No space left"):
            assert Program(SOURCE, "c++").compile(cache=cache).get_kernel("seven")
    assert cache["a"] == b"first" and list((folder / "tmp").iterdir()) == []


def test_a_folder_that_cannot_be_written(folder, device, monkeypatch, ptx_fits):
    Program(SOURCE, "c++").compile(cache=FileStreamProgramCache(folder))

    def refused(*arguments, **keywords):
        raise PermissionError(13, "Permission denied")

    for name in ("open", "mkdir", "unlink", "utime", "replace"):
        monkeypatch.setattr(os, name, refused)
    cache, log = FileStreamProgramCache(folder), Log()
    assert Program(SOURCE, "c++").compile(cache=cache, logs=log).get_kernel("seven") and log.count == 0
    with pytest.warns(CUDAWarning, match="Permission denied"):
        Program(SOURCE.replace("7", "8"), "c++").compile(cache=cache, logs=log)
    assert log.count == 1
    with pytest.raises(PermissionError):
        FileStreamProgramCache(folder / "new")


def test_a_program_is_found(cache, device, stream, ptx_fits):
    log = Log()
    first = Program(SOURCE, "c++").compile(cache=cache, logs=log)
    again = Program(SOURCE, "c++").compile(cache=cache, logs=log)
    assert log.count == 1 and again.code == first.code and again.name == first.name and again.code_type is first.code_type
    assert runs(again, stream) == 7
    other = Program(SOURCE.replace("= 7", "= 8"), "c++").compile(cache=cache, logs=log)
    assert log.count == 2 and runs(other, stream) == 8


def test_what_a_kernel_takes_is_known_again(cache, device, stream, ptx_fits):
    """With its names by expression, and the types of its parameters: an int becomes a float."""
    log = Log()
    for _ in range(2):
        code = Program(TEMPLATE, "c++").compile(name_expressions=["store<float>"], cache=cache, logs=log)
        bits = runs(code, stream, "store<float>", 1)
        assert np.int32(bits).view(np.float32) == 1.0
    assert log.count == 1 and list(code.symbol_mapping) == ["store<float>"]
    Program(TEMPLATE, "c++").compile(name_expressions=["store<int>"], cache=cache, logs=log)
    assert log.count == 2


@pytest.mark.parametrize("kind", [OfUser, dict])
def test_caches_of_the_program(kind, device, stream, ptx_fits):
    cache, log = kind(), Log()
    for _ in range(2):
        code = Program(TEMPLATE, "c++").compile(name_expressions=["store<int>"], cache=cache, logs=log)
        assert runs(code, stream, "store<int>", 5) == 5
    assert log.count == 1
    for key in list(cache.keys() if kind is dict else cache.values):
        cache[key] = b"nonsense"
    code = Program(TEMPLATE, "c++").compile(name_expressions=["store<int>"], cache=cache, logs=log)
    assert log.count == 2 and runs(code, stream, "store<int>", 6) == 6
    (image,) = (each for each in (cache if kind is dict else cache.values) if not each.endswith(b" details"))
    cache[image] = Program(TEMPLATE.replace("value;", "9;"), "c++").compile(name_expressions=["store<int>"]).code
    code = Program(TEMPLATE, "c++").compile(name_expressions=["store<int>"], cache=cache, logs=log)
    assert log.count == 3 and runs(code, stream, "store<int>", 4) == 4  # what lies beside it is of another image
    wrong = {"cache must be a utils.ProgramCacheResource, not int": 3, "not the class InMemoryProgramCache": InMemoryProgramCache}
    wrong["must return bytes or None, not str"] = type("Texts", (dict,), {"get": lambda self, key: "text"})()
    for message, cache in wrong.items():
        with pytest.raises(TypeError, match=message):
            Program(SOURCE, "c++").compile(cache=cache)


@pytest.mark.parametrize("kind", ["memory", "files", "user"])
def test_threads_compile_once(kind, folder, device, stream, ptx_fits):
    """Mutant: without turns each thread that misses compiles."""
    cache = {"memory": InMemoryProgramCache, "user": OfUser, "files": lambda: FileStreamProgramCache(folder)}[kind]()
    log = Log()
    codes = together(8, lambda index: Program(SOURCE, "c++").compile(cache=cache, logs=log))
    assert log.count == 1 and len({each.code for each in codes}) == 1 and runs(codes[-1], stream) == 7


def test_who_waits_compiles_when_the_first_one_fails(cache, device):
    def fail(index):
        with pytest.raises(NVRTCError, match="cannot compile"):
            Program("nonsense", "c++").compile(cache=cache)

    together(4, fail)
    assert len(cache) == 0


def test_a_program_that_compiles_amid_its_own_compilation(cache, device):
    """Its log's `write` may do anything."""

    codes = []

    class Again:
        def write(self, text):
            codes.append(Program(SOURCE, "c++").compile(cache=cache))

    code = Program(SOURCE, "c++").compile(cache=cache, logs=Again())
    assert [each.code for each in codes] == [code.code]


def test_programs_that_compile_each_other(cache, device):
    """Mutant: each of the threads waits for the other's turn."""
    sources, both = [SOURCE, SOURCE.replace("7", "8")], threading.Barrier(2)

    class Other:
        def __init__(self, index):
            self.index = index

        def write(self, text):
            both.wait(20)
            Program(sources[1 - self.index], "c++").compile(cache=cache)

    codes = together(2, lambda index: Program(sources[index], "c++").compile(cache=cache, logs=Other(index)), timeout=25)
    log = Log()
    assert [Program(each, "c++").compile(cache=cache, logs=log).code for each in sources] == [each.code for each in codes]
    assert log.count == 0 and codes[0].code != codes[1].code


def test_what_goes_to_another_process(folder):
    cache = FileStreamProgramCache(folder, max_size_bytes=100)
    cache["a"] = b"image"
    there = pickle.loads(pickle.dumps(cache))
    assert there["a"] == b"image"
    there["b"] = bytes(101)
    assert there.get("b") is None
    cache = InMemoryProgramCache(max_size_bytes=100)
    cache["a"] = b"image"
    there = pickle.loads(pickle.dumps(cache))
    assert len(there) == 0 and cache["a"] == b"image"
    there["b"] = bytes(101)
    assert there.get("b") is None


PROCESSES = """
import sys
from stress.program_cache import main

sys.argv[1:] = "--kernels 6 --processes 2 --threads 3 --kills 1".split()
sys.exit(main())
"""


def test_processes_compile_once_also_when_one_is_killed(run_python, ptx_fits):
    said = run_python(PROCESSES)
    assert "of 6 kernels" in said and "wrong" not in said


def compiled(number, process):
    return stress_program_cache.Entry("compiled", number, process)


def held(number, process):
    return stress_program_cache.Entry("held", number, process)


@pytest.mark.parametrize(
    ("journal", "wrong"),
    [
        ([compiled(0, 1), compiled(1, 2), held(0, 1), held(1, 1)], []),
        ([compiled(0, 1), compiled(1, 1), compiled(0, 2), compiled(1, 2), held(0, 2)], []),  # 1 was at two when it was killed
        ([compiled(0, 1), compiled(1, 1), held(0, 1), compiled(0, 2)], ["kernel 0 was compiled again after somebody held it"]),
        ([compiled(0, 2), compiled(1, 2), compiled(0, 3)], ["kernel 0 was compiled again, and who had compiled it lived"]),
        ([compiled(0, 1), compiled(1, 1), compiled(0, 1)], ["kernel 0 was compiled twice by one process"]),
        ([compiled(0, 1)], ["nobody compiled the kernels [1]"]),
    ],
)
def test_what_is_compiled_again_needs_one_that_was_killed(journal, wrong):
    """The oracle of the test above: a process that was killed may have been at one kernel with each of its threads."""
    assert stress_program_cache.differences(journal, kept=2, kernels=2, killed={1}) == wrong
    assert stress_program_cache.differences(journal, 1, 2, {1}) == ["1 of 2 kernels are in the cache", *wrong]


FORKS = """
import os, threading
from ftcuda.utils import FileStreamProgramCache, InMemoryProgramCache

caches = InMemoryProgramCache(), FileStreamProgramCache(os.environ["FOLDER"])
inside, may_go = threading.Event(), threading.Event()

def hold():
    with caches[0].exclusive("a"), caches[1].exclusive("b"):
        inside.set()
        may_go.wait()

def hold_file():
    with caches[1].exclusive("c"):
        inside.set()
        may_go.wait()

for each in (hold, hold_file):
    inside.clear()
    threading.Thread(target=each).start()
    inside.wait()
caches[0]["a"] = caches[1]["a"] = b"image"
asking, may_end = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    with caches[0].exclusive("a"):  # its parent's threads are not here
        assert caches[0].get("a") is None and caches[1]["a"] == b"image"
        caches[0]["a"] = b"child"
    os.write(asking[1], b" ")
    with caches[1].exclusive("c"):  # after its parent
        os.read(may_end[0], 1)
    os._exit(0)
os.read(asking[0], 1)
assert caches[0]["a"] == b"image"
may_go.set()
with caches[1].exclusive("d"):
    pass
os.write(may_end[1], b" ")
assert os.waitpid(child, 0)[1] == 0

may_end = os.pipe()
with caches[1].exclusive("e"):
    child = os.fork()
    if child == 0:
        pass
if child == 0:  # it has left its parent's turn, and has its own
    with caches[1].exclusive("e"):
        os.read(may_end[0], 1)
    os._exit(0)
os.write(may_end[1], b" ")
assert os.waitpid(child, 0)[1] == 0

with caches[1].exclusive("f"):
    child = os.fork()
    if child == 0:
        os.read(may_end[0], 1)
        os._exit(0)
with caches[1].exclusive("f"):  # though the child lives
    os.write(may_end[1], b" ")
assert os.waitpid(child, 0)[1] == 0

ends = os.pipe()
child = os.fork()
if child == 0:  # dies amid its turn, and leaves a child of its own
    with caches[1].exclusive("g"):
        if os.fork() == 0:
            os.read(may_end[0], 1)
        else:
            os.write(ends[1], b" ")
        os._exit(0)
os.read(ends[0], 1)
with caches[1].exclusive("g"):
    os.write(may_end[1], b" ")
assert os.waitpid(child, 0)[1] == 0
print("done")
"""


def test_a_forked_child_waits_for_nobody_and_nobody_for_it(run_python, tmp_path):
    """Mutant: the child has its parent's locks too, and who waits for one waits until it ends."""
    assert run_python(FORKS, FOLDER=str(tmp_path / "cache"), PYTHONWARNINGS="ignore").split() == ["done"]


@pytest.mark.skipif(os.name == "nt", reason="a file has one process there")
def test_a_child_that_no_python_forked(tmp_path):
    """It has the file open still. Mutant: who waits for the lock waits for the child."""
    path, got = tmp_path / "lock", threading.Event()

    def wait():
        with file_lock(path):
            got.set()

    waiting = threading.Thread(target=wait)
    with file_lock(path):
        (held,) = HELD
        of_child = os.dup(held)
        waiting.start()
        until_waits_for(os.fstat(held).st_ino)
    has_got = got.wait(10)
    os.close(of_child)
    waiting.join()
    assert has_got


def until_waits_for(inode):
    """A thread waits for the lock of a file, as the system says."""
    while not any("->" in line and f":{inode} " in line for line in Path("/proc/locks").read_text().splitlines()):
        threading.Event().wait(0.001)


HEADERS = [
    '#include "x.h"', '  #  include "x.h"', '#define X "x.h"\n#include X', '#/* a\nb */include "x.h"', '#\\\n include "x.h"', '%:include "x.h"',
    '#if __has_include("x.h")\n#endif', '__device__ const char* a = "/*";\n#include "x.h"\n/**/', '// a \\ \n#include "x.h"', '\f#\vinclude\f"x.h"',
    '\r#\rinclude\r"x.h"', '#include_next "x.h"', '#include "./x.h"', "const int a = 1'0 + '\"/*';\n#include \"x.h\"\n/**/",
    '__device__ const char* a = R"(\n/*)";\n#include "x.h"\n/**/', '#include <{folder}/x.h>', '#include <{up}{folder}/x.h>', '#include "{folder}/x.h"',
    '#define H __has_include\n#if H("x.h")\n#endif', '#if __has_include(<{folder}/x.h>)\n#endif',
]  # fmt: skip


@pytest.mark.parametrize("line", HEADERS)
def test_headers_of_the_current_folder_are_not_in_the_key(line, device, tmp_path, monkeypatch):
    """NVRTC finds them there. Mutant: the program is found after its header has changed."""
    (tmp_path / "x.h").write_text("#define SEVEN 7")
    monkeypatch.chdir(tmp_path)
    source = f"{line.replace('{folder}', str(tmp_path)).replace('{up}', '..' + '/..' * 20)}\n{SOURCE}"
    with suppress(NVRTCError):  # some it reads only in the host's part of the source
        Program(source, "c++").compile("ptx")
    with pytest.raises(ValueError, match="which may read a file of yours"):
        Program(source, "c++").compile("ptx", cache={})
    assert key(code=source, extra_digest=b"1") != key(code=source, extra_digest=b"2")


def test_what_no_source_include_allows(device, tmp_path):
    options = ProgramOptions(arch="compute_80", no_source_include=True)
    assert key(code='#include "x.h"', options=options)
    for line in (f'#include "{tmp_path}/x.h"', "#define X <x.h>\n#include X", '#include "../x.h"', f"#include <{tmp_path}/x.h>"):
        with pytest.raises(ValueError, match="which may read a file of yours"):
            key(code=line, options=options)
    for macro in (("H", "__has_include"), "H=__has_include"):
        with pytest.raises(ValueError, match="'__has_include', which may read a file of yours"):
            key(options=ProgramOptions(arch="compute_80", define_macro=[macro]))


@pytest.mark.parametrize("word", ["__DATE__", "__TIME__", "__TIMESTAMP__"])
def test_the_time_of_compilation_is_not_in_the_key(word):
    with pytest.raises(ValueError, match=f"with {word}: what is found has that of its compilation"):
        key(code=f"__device__ const char* when = {word};")
    with pytest.raises(ValueError, match=word):
        key(options=ProgramOptions(arch="compute_80", define_macro=[("WHEN", word)]))
    assert key(code=f"// {word}") and key(code=word, extra_digest=b"")


LINES = [
    "#include <cuda_fp16.h>", "#include <cuda/std/cstdint>", '// #include "x.h"', '/*\n#include "x.h"\n*/', "#if __has_include(<a>)\n#endif",
    "__device__ int include, has_include;",
]  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_headers_of_cuda_are(line, device):
    assert key(code=f"{line}\n{SOURCE}")


RESTRICT = """
from ftcuda import Program, ProgramOptions
from ftcuda.utils import InMemoryProgramCache

SOURCE = 'extern "C" __global__ void k(const int* a, int* b) { b[0] = a[0]; b[1] = a[0]; }'
cache, log = InMemoryProgramCache(), []

class Log:
    def write(self, text):
        log.append(text)

class Restrict:  # amid another compilation, whose program is made by then or not
    def write(self, text):
        compiled(restrict=True)

def compiled(logs=Log(), source=SOURCE, **options):
    return Program(source, "c++", ProgramOptions(arch="compute_80", **options)).compile("ptx", cache=cache, logs=logs).code

plain = compiled()
assert compiled() == plain and len(log) == 1 and len(cache) == 1
other = compiled(Restrict(), SOURCE.replace("b[0]", "b[2]"))
assert len(cache) == 2 and len(log) == 2, "what may be restrict's is kept for all"
after = compiled()
assert len(log) == 3 and len(cache) == 3, "found, though NVRTC would make another program of it"
assert compiled() == after and compiled(restrict=True) and len(log) == 3
print("done")
"""


def test_restrict_stays_on_and_is_in_the_key(run_python):
    """NVRTC 13.5 keeps it for all later programs. Mutants: what it makes then is kept for processes without; or found."""
    assert run_python(RESTRICT).split() == ["done"]


def key(**changes):
    parts = {"code": SOURCE, "code_type": "c++", "options": ProgramOptions(arch="compute_80"), "target_type": "ptx", **changes}
    return make_program_cache_key(**parts)


def test_keys_tell_programs_apart():
    options = [ProgramOptions(arch="compute_80", **each) for each in ({}, {"debug": True}, {"define_macro": "A"}, {"name": "other"})]
    keys = [
        *(key(options=each) for each in options), key(options=ProgramOptions(arch="compute_90")), key(code=SOURCE + " "),
        key(target_type="ltoir", options=ProgramOptions(arch="compute_80", link_time_optimization=True)),
        key(name_expressions=["a", "b"]), key(name_expressions=["a b"]), key(extra_digest=b"1"), key(extra_digest=b"2"),
    ]  # fmt: skip
    assert len(set(keys)) == len(keys) and all(isinstance(each, bytes) for each in keys)
    assert key() == key(code=SOURCE.encode()) == key(code_type="C++", target_type="PTX") == key(extra_digest=b"")
    assert key(name_expressions=["a", "b"]) == key(name_expressions=("b", "a"))


def test_a_key_is_that_of_compile(device):
    cache = {}
    options = ProgramOptions(arch="compute_80")
    code = Program(SOURCE, "c++", options).compile("ptx", cache=cache)
    assert cache == {key(): code.code} and sha256(code.code).digest() != key()


@pytest.mark.parametrize("options", [{"create_pch": "a.pch"}, {"time": "times.csv"}, {"fdevice_time_trace": "trace.json"}])
def test_what_writes_files_is_not_cached(options, device, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ProgramOptions(arch="compute_80", **options)
    with pytest.raises(ValueError, match="what is found is not compiled, and writes no file"):
        key(options=options, extra_digest=b"1")
    with pytest.raises(ValueError, match="cannot cache a program with"):
        Program(SOURCE, "c++", options).compile("ptx", cache={})


@pytest.mark.parametrize(
    "options", [{"include_path": "/a"}, {"pre_include": "a.h"}, {"pch": True}, {"use_pch": "a.pch"}, {"pch_dir": "/a"}, {"name": "a/b.cu"}]
)  # fmt: skip
def test_what_reads_other_files_needs_a_digest_of_them(options, device):
    options = ProgramOptions(arch="compute_80", **options)
    with pytest.raises(ValueError, match="extra_digest"):
        key(options=options)
    with pytest.raises(ValueError, match="extra_digest"):
        Program(SOURCE, "c++", options).compile("ptx", cache={})
    assert key(options=options, extra_digest=b"1") != key(options=options, extra_digest=b"2")
    with pytest.raises(TypeError, match="extra_digest must be bytes, not str"):
        key(options=options, extra_digest="1")


@pytest.mark.parametrize("options", [None, {}, "-O3"])
def test_keys_are_of_options(options):
    with pytest.raises(TypeError, match="options must be ProgramOptions, not"):
        key(options=options)


def test_names_in_bytes(device):
    """As cuda.core takes them."""
    code = Program(TEMPLATE, "c++").compile("ptx", name_expressions=[b"store<int>"])
    assert list(code.symbol_mapping) == ["store<int>"] and key(name_expressions=[b"a"]) == key(name_expressions=["a"])
    for wrong in (b"store<int>", "store<int>"):
        with pytest.raises(TypeError, match="name_expressions must be a sequence of str, not one"):
            key(name_expressions=wrong)


def test_an_empty_path():
    with pytest.raises(ValueError, match="path must be a folder, not the empty text"):
        FileStreamProgramCache("")
