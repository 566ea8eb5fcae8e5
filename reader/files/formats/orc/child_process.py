"""Runs a decoder that can crash in a process of its own, so that a crash is an error with a name.

One child serves one format of one task: it is forked at its first split, is asked for split after
split, and ends when its pipe closes, be it that the parent is done or dead. Batches come back as
Arrow IPC. A local file the child opens itself; of any other the parent reads what the child asks
for, since clients of object stores have threads, which do not live on in a child.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import pickle
import signal
import struct
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NoReturn

import pyarrow as pa
from pyarrow import ipc
from typing_extensions import override

from .....checkpoint_meta.files.file_split import FileSplit
from ...io.source_file import AsFile, RandomAccess

Produce = Callable[[FileSplit, pa.NativeFile | None], Iterator[pa.RecordBatch]]
"""Decodes a split: of the file that is given, or of one that it opens itself."""

_HEAD = struct.Struct("<cQ")
_BATCH, _ERROR, _DONE, _READ = b"b", b"e", b"d", b"r"
_RANGE = struct.Struct("<QQ")
"""A position, and how many bytes from there."""


class ChildDied(Exception):
    """The child ended before its answer did; says how."""


@dataclass(slots=True)
class _Child:
    pid: int
    requests: BinaryIO
    answers: BinaryIO

    def close(self) -> int:
        """Let the child end, and wait for it; returns its wait status."""
        for pipe in (self.requests, self.answers):
            try:
                pipe.close()
            except BrokenPipeError:
                continue
        _, status = os.waitpid(self.pid, 0)
        return status

    def kill(self) -> None:
        """End the child in the middle of an answer."""
        # Without its pipes it would end by itself, but only where it writes the next time.
        os.kill(self.pid, signal.SIGKILL)
        self.close()


class ChildDecoder:
    """Hands splits to `produce` in a child process."""

    supported = hasattr(os, "fork")

    def __init__(self, produce: Produce, most_bytes: int) -> None:
        """`produce` raises nothing but errors that survive pickling.

        It gets a `MemoryError` where it would take more than `most_bytes` in addition to what it
        has.
        """
        self._produce = produce
        self._most_bytes = most_bytes
        self._child: _Child | None = None
        self._end: weakref.finalize[..., ChildDecoder] | None = None

    def batches(
        self, split: FileSplit, source: pa.NativeFile | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the batches of `split`, as `produce` yields them.

        Args:
            split: what to decode.
            source: its file, if only this process can read it.

        Raises:
            ChildDied: the decoder has crashed.
        """
        child = self._child or self._start()
        whole = False
        try:
            pickle.dump((split, None if source is None else source.size()), child.requests)
            child.requests.flush()
            while (answer := _receive(child.answers))[0] in (_BATCH, _READ):
                if answer[0] == _BATCH:
                    yield from ipc.open_stream(answer[1])
                else:
                    assert source is not None
                    _send_range(source, answer[1], child.requests)
            whole = True
        except (EOFError, BrokenPipeError):
            whole = True
            raise self._died() from None
        finally:
            # An answer that was not taken to its end would be taken for the next one's.
            if not whole:
                self._forget().kill()
        if answer[0] == _ERROR:
            raise pickle.loads(answer[1])  # noqa: S301 - written by our own child

    def _start(self) -> _Child:
        take, ask = os.pipe()
        read, write = os.pipe()
        with warnings.catch_warnings():
            # Python warns of threads that hold locks; the child takes none of theirs.
            warnings.simplefilter("ignore", DeprecationWarning)
            # A fork starts at once; a new interpreter would have to import Arrow first, for each
            # task.
            pid = os.fork()
        if pid == 0:
            _serve(self._produce, self._most_bytes, take, write)
        os.close(take)
        os.close(write)
        child = _Child(pid, os.fdopen(ask, "wb"), os.fdopen(read, "rb"))
        self._child = child
        # Unlike `__del__`, it is called at the end of the process as well.
        self._end = weakref.finalize(self, child.close)
        return child

    def _forget(self) -> _Child:
        assert self._child is not None
        assert self._end is not None
        self._end.detach()
        child, self._child = self._child, None
        return child

    def _died(self) -> ChildDied:
        status = self._forget().close()
        if os.WIFSIGNALED(status):
            return ChildDied(f"the decoder crashed ({signal.Signals(os.WTERMSIG(status)).name})")
        return ChildDied(f"the decoder ended with status {os.waitstatus_to_exitcode(status)}")


def _send_range(source: pa.NativeFile, asked: bytes, requests: BinaryIO) -> None:
    position, count = _RANGE.unpack(asked)
    source.seek(position)
    data = source.read(count)
    requests.write(_HEAD.pack(_READ, len(data)))
    requests.write(data)
    requests.flush()


class _OfParent(RandomAccess):
    """In the child: a file that the parent reads."""

    def __init__(self, requests: BinaryIO, answers: BinaryIO) -> None:
        self._requests, self._answers = requests, answers
        self._lock = threading.Lock()

    @override
    def read_at(self, position: int, count: int) -> bytes:
        # Arrow may ask from threads of its own, and a question belongs with its answer.
        with self._lock:
            self._answers.write(_HEAD.pack(_READ, _RANGE.size))
            self._answers.write(_RANGE.pack(position, count))
            self._answers.flush()
            return _receive(self._requests)[1]

    @override
    def close(self) -> None:
        pass


def _receive(answers: BinaryIO) -> tuple[bytes, bytes]:
    head = answers.read(_HEAD.size)
    if len(head) < _HEAD.size:
        raise EOFError
    kind, length = _HEAD.unpack(head)
    data = answers.read(length)
    if len(data) < length:
        raise EOFError
    return kind, data


def _serve(produce: Produce, most_bytes: int, take: int, write: int) -> NoReturn:
    """The life of the child. It must never return into the parent's code."""
    try:
        # The parent's sockets are not ours to keep open, nor is its crash report ours to write.
        _close_others({take, write})
        faulthandler.disable()
        _limit_memory(most_bytes)
        with os.fdopen(take, "rb") as requests, os.fdopen(write, "wb") as answers:
            while True:
                split, size = pickle.load(requests)  # noqa: S301 - from our parent
                source = None
                if size is not None:
                    source = pa.PythonFile(AsFile(_OfParent(requests, answers), size), "r")
                _answer(produce, split, source, answers)
    except (EOFError, BrokenPipeError):
        # Not `sys.exit`: what the parent has registered to be done at its end must not be done
        # here.
        os._exit(0)
    finally:
        os._exit(1)


def _close_others(kept: set[int]) -> None:
    """Close what others may wait for the end of: files, pipes and sockets."""
    try:
        names = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        # In containers, SC_OPEN_MAX may be a billion.
        names = list(range(min(os.sysconf("SC_OPEN_MAX"), 65_536)))
    for number in names:
        with contextlib.suppress(OSError):
            # gRPC, where the parent has loaded it, starts its threads again in each fork. They wait
            # on what has no name but this, and abort the process if it is closed.
            of_kernel = _kind_of(number) == "anon_inode"
            if number > 2 and number not in kept and not of_kernel:
                os.close(number)


def _kind_of(number: int) -> str:
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/self/fd/{number}").partition(":")[0]
    return ""


def _limit_memory(most_bytes: int) -> None:
    """Allow this process so much more than it has; where the system does not count, nothing."""
    import resource

    # Arrow's usual allocator may have reserved a GiB before the fork, which counts as had.
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return
    has = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmData"))
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = 1024 * has + most_bytes
    if hard == resource.RLIM_INFINITY or wanted < hard:
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))


def _answer(
    produce: Produce, split: FileSplit, source: pa.NativeFile | None, answers: BinaryIO
) -> None:
    kind, last = _DONE, b""
    try:
        for batch in produce(split, source):
            sink = pa.BufferOutputStream()
            with ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            data = sink.getvalue()
            answers.write(_HEAD.pack(_BATCH, data.size))
            answers.write(data)
    except BrokenPipeError:
        raise
    except Exception as err:  # noqa: BLE001 - the parent raises it
        kind, last = _ERROR, pickle.dumps(err)
    answers.write(_HEAD.pack(kind, len(last)))
    answers.write(last)
    answers.flush()
