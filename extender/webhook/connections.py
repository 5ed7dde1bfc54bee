"""How connections get threads: for whole heads only, whatever else their clients do.

A thread is lent for a whole head only: clients that stall or drip in it keep nobody waiting. Over TLS
the handshake comes first, and without a thread too. A body has a thread while it comes, and has to keep
coming: eight that stall hold up the others for `STALL_S`, and no longer.
"""

from __future__ import annotations

import errno
import selectors
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from enum import Enum, auto
from functools import partial
from typing import Any, Final

from gunicorn import http
from gunicorn.http.unreader import SocketUnreader
from gunicorn.workers.gthread import TConn, ThreadWorker

from extender.webhook import tls

HEAD_S: Final = 2.0
"""How long a head may take from its first byte, and so may a handshake: kube-scheduler sends either
at once."""

STALL_S: Final = 5.0
"""How long a client may pause within a body or an answer before it loses its thread: kube-scheduler
sends a body at once, and gives up by itself after 5 s."""

REQUEST_S: Final = 10.0
"""How long a request may take from its first byte, beside what `SLOWEST_BPS` grants it: less than
the three failed probes after which a kubelet restarts the pod."""

SLOWEST_BPS: Final = 1e6
"""Bytes a second at which a body may come however large it is: 80 MB get 90 s."""

LINGERING: Final = 64
"""Connections that are being closed, up to which one more may linger: they are open files, too."""

_NO_MORE_FILES: Final = (errno.EMFILE, errno.ENFILE)
_HEAD_END: Final = b"\r\n\r\n"
_LONGEST_HEAD: Final = 1 << 16
"""Bytes. A longer one is for the parser to refuse."""
_PIECE: Final = 1 << 13
_NOT_NOW: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Unreader(SocketUnreader):  # type: ignore[misc]
    """The bytes of a connection, until the request is due; after that the client counts as gone."""

    due_s = 0.0

    def chunk(self, size_hint: int | None = None) -> bytes:
        """The next piece.

        Raises:
            ConnectionResetError: it did not come in time. gunicorn closes such a connection without
                a word, whereas it logs a TimeoutError with a traceback.
        """
        bound_s = self.sock.gettimeout()
        try:
            self.sock.settimeout(min(bound_s, self._left_s()))
            piece: bytes = super().chunk(size_hint)
        except TimeoutError as error:
            # Or gunicorn would wait for the rest once more, to keep the connection.
            self.due_s = 0.0
            raise ConnectionResetError(errno.ECONNRESET, "the client is too slow") from error
        finally:
            self.sock.settimeout(bound_s)
        self.due_s += len(piece) / SLOWEST_BPS
        return piece

    def _left_s(self) -> float:
        left_s = self.due_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        return left_s


class Heard(Enum):
    """What has come of a connection's next head."""

    NOTHING = auto()
    """Not a byte of it: the client is idle. Go dials some connections in reserve."""
    PART = auto()
    WHOLE = auto()
    """The head, or all that will ever come."""


class Connection(TConn):  # type: ignore[misc]
    """A connection that shakes hands and collects the next head while no thread is bound to it."""

    parser: Any

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.data_ready = True  # it gets a thread only then
        self._head = b""
        self._began_s: float | None = None
        self._shaken = not isinstance(self.sock, ssl.SSLSocket)

    def hears(self) -> Heard:
        """Take in what has come.

        Raises:
            ssl.SSLError: the client does not speak TLS, or shows a certificate that does not hold.
        """
        self.sock.setblocking(False)
        if self._began_s is None:
            self._began_s = time.monotonic()
            self.timeout = self._began_s + HEAD_S
            self._head = self.parser.unreader.take_buffered() if self.parser else b""
        try:
            if not self._shaken:
                self.sock.do_handshake()
                self._shaken, self._began_s = True, None
                return self.hears()
            # Read along with the body before it, the head may be here already.
            while _HEAD_END not in self._head and len(self._head) <= _LONGEST_HEAD:
                piece = self.sock.recv(_PIECE)
                self._head += piece
                if not piece:
                    break
        except _NOT_NOW:
            if self._head or not self._shaken:
                return Heard.PART
            self._began_s = None
            return Heard.NOTHING
        except ssl.SSLError:
            raise
        except OSError:
            return Heard.WHOLE
        return Heard.WHOLE

    def init(self) -> None:
        """Make ready for a request, in its thread."""
        if self.parser is None:
            self.parser = http.get_parser(self.cfg, self.sock, self.client)
            self.parser.unreader = Unreader(self.sock)
            self.initialized = True
        self.sock.settimeout(STALL_S)
        self.parser.unreader.unread(self._head)
        self.parser.unreader.due_s = (self._began_s or time.monotonic()) + REQUEST_S
        self._head, self._began_s = b"", None


class Worker(ThreadWorker):  # type: ignore[misc]
    """The worker of gunicorn, none of whose threads waits for a head, nor its polling one at all.

    gunicorn lends a new connection a thread, which then shakes hands and reads the head without any
    bound. Here it is polled like one that is kept alive, and the polling thread does both as they
    come.

    Before gunicorn closes a connection it lingers for up to 2 s until the client has closed its
    end, and meanwhile nobody else is accepted or read: here a thread of its own lingers.
    """

    certificates: tls.Certificates | None = None
    """What to serve TLS with; None: plain HTTP."""

    pending_conns: deque[Connection]
    keepalived_conns: deque[Connection]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._closers = ThreadPoolExecutor(8, thread_name_prefix="surefoot-closer")
        self._closing = 0

    def accept(self, listener: socket.socket) -> None:
        """Take a connection; where it is the last one that may be, at the cost of an idle one."""
        try:
            sock, client = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError as error:
            if error.errno not in _NO_MORE_FILES:
                raise
            self._drop_an_idle_one()
            return
        if self.certificates is not None:
            try:
                sock = self.certificates.wrap(sock)
            except OSError:
                sock.close()
                return
        if self.nr_conns + 1 >= self.cfg.worker_connections:
            self._drop_an_idle_one()
        self.nr_conns += 1
        self._idle(Connection(self.cfg, sock, client, listener.getsockname()))

    def enqueue_req(self, conn: Connection) -> None:
        """Lend a thread to a connection with a whole head; any other waits on without one."""
        try:
            heard = conn.hears()
        except ssl.SSLError as error:
            self._refuse(conn, error)
            return
        if heard is Heard.WHOLE:
            super().enqueue_req(conn)
        elif heard is Heard.NOTHING:
            self._idle(conn)
        else:
            self.pending_conns.append(conn)
            self._poll(conn, self.on_pending_socket_readable)

    def murder_pending(self) -> None:
        """Close what did not send its head in time; one that drips has moved to the end."""
        self.pending_conns = deque(sorted(self.pending_conns, key=lambda conn: conn.timeout))
        super().murder_pending()

    def finish_request(self, conn: TConn, fs: Future[Any]) -> None:
        """Keep the connection, or have it closed."""
        conn.close = partial(self._close, conn)
        super().finish_request(conn, fs)

    def set_accept_enabled(self, enabled: bool) -> None:
        """Take new connections or not; while stopping refuse them, instead of leaving them unheard."""
        super().set_accept_enabled(enabled)
        if not self.alive:
            for listener in self.sockets:
                listener.close()

    def _idle(self, conn: Connection) -> None:
        """Wait for the first byte of a head, as long as a connection is kept alive."""
        conn.set_timeout()
        self.keepalived_conns.append(conn)
        self._poll(conn, self.on_client_socket_readable)

    def _poll(self, conn: Connection, heard: Callable[[Connection, socket.socket], None]) -> None:
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(heard, conn))

    def _close(self, conn: Connection, *, graceful: bool = False) -> None:
        """Close in a thread; at once where so many linger already that they would pile up."""
        if self._closing >= LINGERING:
            TConn.close(conn)
            return
        self._closing += 1
        closing = self._closers.submit(TConn.close, conn, graceful=graceful)
        closing.add_done_callback(lambda _: self.method_queue.defer(self._closed))

    def _closed(self) -> None:
        self._closing -= 1

    def _drop_an_idle_one(self) -> None:
        """Make room for the next connection, or idle clients could keep everybody else out: rather
        one that never asked anything, and the one that has been idle longest.
        """
        if not self.keepalived_conns:
            return
        silent = (conn for conn in self.keepalived_conns if conn.parser is None)
        longest = next(silent, self.keepalived_conns[0])
        self.keepalived_conns.remove(longest)
        self.poller.unregister(longest.sock)
        self.nr_conns -= 1
        longest.close()

    def _refuse(self, conn: Connection, error: ssl.SSLError) -> None:
        self.nr_conns -= 1
        tls.refused(conn.client, error)
        if error.reason == "HTTP_REQUEST":
            conn.sock = tls.answered_in_plain(conn.sock)
        self._close(conn, graceful=True)
