"""A terminal of a given size, and what it shows of its input."""

import contextlib
import fcntl
import os
import pty
import re
import struct
import termios
import threading

CONTROL = re.compile(r"\x1b\[(\d*)([A-Za-z])|\r|\n|\x07|[^\x1b\r\n\x07]+")


class Screen:
    """The rows of a terminal that scrolls, wraps, and knows the few controls
    that we use; a row that scrolled off is kept."""

    def __init__(self, columns):
        self.columns = columns
        self.rows = [""]
        self.row = self.column = 0

    def put(self, text):
        for part in CONTROL.finditer(text):
            self._control(part) if part[2] else self._text(part[0])

    def _control(self, part):
        count = int(part[1] or 0)
        if part[2] == "A":
            self.row = max(0, self.row - max(1, count))
        elif part[2] in "JK":
            assert count == 0, part[0]
            self.rows[self.row] = self.rows[self.row][:self.column]
            if part[2] == "J":
                del self.rows[self.row + 1:]
        else:
            raise AssertionError(f"unknown control {part[0]!r}")

    def _text(self, text):
        if text == "\r":
            self.column = 0
            return
        if text == "\n":
            self._down()
            return
        for letter in text:
            if self.column == self.columns:
                self._down()
                self.column = 0
            line = self.rows[self.row].ljust(self.column)
            self.rows[self.row] = (line[:self.column] + letter +
                                   line[self.column + 1:])
            self.column += 1

    def _down(self):
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append("")


class Terminal:
    """Standard output and error of a program on one terminal."""

    def __init__(self, columns, rows=24):
        self.leader, self.follower = pty.openpty()
        self.screen = Screen(columns)
        self.lock = threading.Condition()
        self.resize(columns, rows)
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def resize(self, columns, rows=24):
        """A wider one shows the same rows; a narrower one would wrap them."""
        with self.lock:
            assert columns >= self.screen.columns
            self.screen.columns = columns
            fcntl.ioctl(self.leader, termios.TIOCSWINSZ,
                        struct.pack("HHHH", rows, columns, 0, 0))

    def started(self):
        """The program has its own descriptors."""
        os.close(self.follower)

    def _read(self):
        rest = b""
        with contextlib.suppress(OSError):  # all ends are closed
            while data := os.read(self.leader, 65536):
                rest += data
                # A control that is cut in two is kept for later.
                cut = rest.rfind(b"\x1b", len(rest) - 8)
                if cut < 0 or re.match(rb"\x1b\[\d*[A-Za-z]", rest[cut:]):
                    cut = len(rest)
                with self.lock:
                    self.screen.put(rest[:cut].decode())
                    self.lock.notify_all()
                rest = rest[cut:]

    def wait_for(self, pattern, timeout=120):
        """Until a row matches."""
        with self.lock:
            assert self.lock.wait_for(
                lambda: any(re.search(pattern, row)
                            for row in self.screen.rows), timeout), self.screen.rows

    def type(self, data):
        os.write(self.leader, data)

    def rows(self):
        """When the program has ended."""
        self.thread.join(120)
        os.close(self.leader)
        return [row for row in self.screen.rows if row]
