"""What crosses the pipe to a compile worker: requests, results, errors, frames."""

from __future__ import annotations

import struct

import profuse as pf
import pytest
from kernels import FUNCTIONS, arguments
from profuse.dialect.errors import Loc
from profuse.dialect.reasons import Kind, Reason
from profuse.executor.compile.compiler import compile_graph
from profuse.executor.compile.request import CompileRequest
from profuse.executor.compile.worker import protocol
from profuse.executor.compile.worker.frames import LARGEST, FrameError, FrameReader, frame, read_frame
from profuse.lowering.target import Target
from small_graphs import add_graph
from worker_requests import request_for


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_result_arrives_as_it_was(name):
    request = request_for(FUNCTIONS[name], *arguments(name), name=name)
    made = compile_graph(request)
    found = protocol.decode_reply(protocol.encode_result(made))
    assert found == made
    assert found.module.to_mlir() == made.module.to_mlir()
    assert {k: v.object for k, v in found.kernels.items()} != {}


def test_a_request_arrives_as_it_was():
    why = Reason.of_error(Kind.WORKER_LOST, pf.WorkerError("lost", loc=Loc("m.py", 3), hint="x"))
    request = CompileRequest("module {}", "dce", Target("t", "c", "+f"), True, True, "/r", "/d", "n", (("g", why),))
    assert protocol.decode_request(protocol.encode_request(request)) == request


def test_a_group_that_is_begun_arrives_as_its_name():
    found = protocol.decode_reply(protocol.encode_group("fusion_0"))
    assert (type(found), found) == (protocol.StartedGroup, "fusion_0")


@pytest.mark.parametrize(
    "error",
    [
        pf.IRError("bad", loc=Loc("m.py", 3, 4), hint="mend it"),
        pf.PipelineError("pass dce failed"),
        pf.AxisError("axis 3"),
    ],
)
def test_an_error_arrives_with_class_place_and_hint(error):
    found = protocol.decode_reply(protocol.encode_error(error))
    assert type(found) is type(error)
    assert (found.what, found.loc, found.hint) == (error.what, error.loc, error.hint)


def test_an_error_of_a_class_from_elsewhere_arrives_as_the_base():
    class Mine(pf.ProfuseError):
        def __init__(self):
            super().__init__("mine")

    assert type(protocol.decode_reply(protocol.encode_error(Mine()))) is pf.ProfuseError
    text = protocol.encode_error(pf.IRError("x")).replace(b"IRError", b"dataclass")
    assert type(protocol.decode_reply(text)) is pf.ProfuseError, "a name of something else"


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xff",
        b"null",
        b"[]",
        b"{}",
        b'{"v": 2}',
        b'{"v": 2, "kind": "result", "body": 3}',
        b'{"v": 2, "kind": "result", "body": {}, "sections": []}',
        b'{"v": 2, "kind": "compile", "body": {}, "sections": []}',
        protocol.encode_group("g") + b"more",
        protocol.encode_error(pf.IRError("x")).replace(b'"v": 2', b'"v": 3'),
    ],
)
def test_what_is_no_reply_is_refused(payload):
    with pytest.raises(protocol.WireError):
        protocol.decode_reply(payload)


def test_a_result_with_an_unknown_op_is_refused():
    made = compile_graph(CompileRequest(add_graph().to_mlir(), "dce", Target("", "")))
    text = protocol.encode_result(made).replace(b'"profuse.add"', b'"profuse.ade"')
    with pytest.raises(protocol.WireError, match=r"unknown op 'profuse\.ade'"):
        protocol.decode_reply(text)


def test_frames_arrive_in_pieces():
    data = frame(b"one") + frame(b"") + frame(b"three" * 1000)
    reader, found = FrameReader(), []
    position = 0
    while position < len(data):
        size = min(reader.missing, 7)
        payload = reader.feed(data[position : position + size])
        position += size
        if payload is not None:
            found.append(payload)
            assert not reader.pending
    assert found == [b"one", b"", b"three" * 1000]


@pytest.mark.parametrize("at", range(16))
def test_a_flipped_bit_is_noticed(at):
    """In magic, length, checksum or payload; a longer length only once the stream ends."""
    data = bytearray(frame(b"data"))
    data[at] ^= 1
    rest = [bytes(data)]

    def read(size):
        piece, rest[0] = rest[0][:size], rest[0][size:]
        return piece

    with pytest.raises(FrameError):
        while read_frame(read) is not None:
            pass


def test_the_end_of_a_stream_is_none_between_frames():
    assert read_frame(lambda size: b"") is None


def test_an_absurd_length_is_refused_before_memory_is_taken():
    with pytest.raises(FrameError, match="more than"):
        FrameReader().feed(struct.pack(">4sII", b"pfw1", LARGEST + 1, 0))
