"""A gRPC call by hand: asks a port of Ray's, with or without a token, and says with which status it answered."""

from __future__ import annotations

import socket
import struct

UNAUTHENTICATED, UNIMPLEMENTED, OK = 16, 12, 0

# One harmless method of each service; a port serves one or several of these.
METHODS = (
    "/ray.rpc.CoreWorkerService/GetCoreWorkerStats",
    "/ray.rpc.NodeManagerService/GetNodeStats",
    "/ray.rpc.NodeInfoGcsService/GetAllNodeInfo",
    "/ray.rpc.ObjectManagerService/Pull",
)


def _header(name: bytes, value: bytes) -> bytes:
    """An HPACK literal, neither indexed nor compressed."""
    size = bytes([len(value)]) if len(value) < 127 else bytes([127, len(value) - 127])
    return b"\x00" + bytes([len(name)]) + name + size + value


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def _complete(answer: bytes) -> bool:
    name, _, value = answer.partition(b"grpc-status")
    return name != answer and len(value) > 0 and len(value) > value[0]


def grpc_status(host: str, port: int, method: str, token: str | None = None) -> int | None:
    """The status of an empty call; None when the peer answers no gRPC."""
    headers = b"".join(
        _header(name, value)
        for name, value in (
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b":path", method.encode()),
            (b":authority", b"probe"),
            (b"content-type", b"application/grpc"),
            (b"te", b"trailers"),
        )
    )
    if token is not None:
        headers += _header(b"authorization", b"Bearer " + token.encode())
    answer = b""
    with socket.create_connection((host, port), timeout=2) as peer:
        peer.sendall(
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
            + _frame(4, 0, 0, b"")
            + _frame(1, 4, 1, headers)
            + _frame(0, 1, 1, b"\0\0\0\0\0")
        )
        try:
            while not _complete(answer):
                received = peer.recv(65536)
                if not received:
                    break
                answer += received
        except TimeoutError:
            pass
    at = answer.find(b"grpc-status")
    if at < 0:
        return None
    size = answer[at + 11]
    return int(answer[at + 12 : at + 12 + size])
