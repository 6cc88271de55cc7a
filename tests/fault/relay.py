"""A relay of TCP connections that passes on all bytes some time later:
latency where tc has no netem.

usage: relay.py PORT HOST:PORT SECONDS
"""

import queue
import socket
import sys
import threading
import time

CHUNK = 1 << 16


def receive(source, waiting, delay_s):
    while data := read(source):
        waiting.put((time.monotonic() + delay_s, data))
    waiting.put((time.monotonic() + delay_s, b""))


def read(source):
    try:
        return source.recv(CHUNK)
    except OSError:
        return b""


def send(waiting, target):
    while True:
        at, data = waiting.get()
        time.sleep(max(0, at - time.monotonic()))
        try:
            if not data:
                target.shutdown(socket.SHUT_WR)
                return
            target.sendall(data)
        except OSError:
            return


def join(source, target, delay_s):
    for end in (source, target):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for a, b in ((source, target), (target, source)):
        waiting = queue.Queue()
        threading.Thread(target=receive, args=(a, waiting, delay_s),
                         daemon=True).start()
        threading.Thread(target=send, args=(waiting, b), daemon=True).start()


def main():
    port, to, delay_s = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    host, target = to.rsplit(":", 1)
    with socket.create_server(("0.0.0.0", port)) as server:
        print("ready", flush=True)
        while True:
            source = server.accept()[0]
            for _ in range(100):  # the task may not listen yet
                try:
                    far = socket.create_connection((host, int(target)))
                    break
                except OSError:
                    time.sleep(0.05)
            else:
                source.close()
                continue
            join(source, far, delay_s)


if __name__ == "__main__":
    main()
