"""A worker dies in the middle of a push: its gradient is on one server and, in
part, on the other.  Both drop it, and the job continues to its checkpoints."""

import pathlib
import signal
import struct
import time

from conftest import wait_for
from jobs import hand, newest, wait_for_checkpoint, write_cluster

SIDE = 900       # pixels: 8.1 million parameters, 15 pieces a server
QUIET_S = 0.5    # without processor time: it waits


def write_images(folder, part, count):
    """Large pictures of ten classes, as IDX files."""
    picture = bytes(range(256)) * (SIDE * SIDE // 256 + 1)
    with open(folder / f"{part}-images-idx3-ubyte", "wb") as out:
        out.write(struct.pack(">4B3I", 0, 0, 8, 3, count, SIDE, SIDE))
        for i in range(count):
            out.write(picture[i:i + 200] + bytes(SIDE * SIDE - 200))
    with open(folder / f"{part}-labels-idx1-ubyte", "wb") as out:
        out.write(struct.pack(">4BI", 0, 0, 8, 1, count))
        out.write(bytes(i % 10 for i in range(count)))


def processor_time(process):
    stat = pathlib.Path(f"/proc/{process.pid}/stat").read_text()
    return stat.rsplit(")", 1)[1].split()[11:13]


def wait_until_it_waits(process):
    """It only waits, for an answer that does not come."""
    seen = [None, 0.0]

    def quiet():
        used, now = processor_time(process), time.monotonic()
        if used != seen[0]:
            seen[:] = [used, now]
        return now - seen[1] > QUIET_S
    wait_for(quiet, "a worker that waits", process)


def test_a_half_pushed_gradient_does_not_block_a_checkpoint(cli, hand):
    data = cli.folder / "data"
    data.mkdir()
    write_images(data, "train", 20)
    write_images(data, "t10k", 10)
    flags = ["--data", f"idx:{data}", "--mode", "async", "--batch", "1",
             "--threads", "1", "--steps", "1000000", "--eval-every", "never",
             "--checkpoint-every", "100", "--keep", "2", "--on-worker-loss",
             "continue", "--heartbeat-timeout", "4", "--workers", "2", "--ps",
             "2"]
    write_cluster(cli, 2, 2)
    first, second = [hand.start("ps", i, *flags) for i in (0, 1)]
    chief, other = [hand.start("worker", i, *flags) for i in (0, 1)]
    wait_for_checkpoint(cli, chief)
    # The second server takes a window of pieces and no more.
    second.send_signal(signal.SIGSTOP)
    wait_until_it_waits(other)
    other.kill()
    second.send_signal(signal.SIGCONT)
    before = newest(cli)
    assert wait_for(lambda: newest(cli) > before + 100,
                    f"checkpoints after step {before}", chief), \
        chief.communicate()
    hand.interrupt(chief, first, second)
