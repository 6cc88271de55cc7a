"""PyTorch's DistributedDataParallel over gloo on loopback, and gloo alone.

N processes; prints one line of JSON: examples all of them trained a second,
or, of gloo alone, microseconds of a sum.  Run by allreduce.py, and by links.py
with one rank on each host; needs PyTorch.
"""
import argparse
import json
import os
import socket
import subprocess
import sys
import time

LEARNING_RATE = 0.01
WARM_STEPS = 5


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--work", choices=("lenet", "alexnet", "gloo"), required=True)
    add("--workers", type=int, default=2)
    add("--batch", type=int, default=32, help="of each worker [32]")
    add("--threads", type=int, default=1, help="of each worker [1]")
    add("--seconds", type=float, default=5)
    add("--floats", type=int, default=61100840,
        help="of gloo alone [61100840, a gradient of AlexNet]")
    add("--rank", type=int, help="which of the workers a child is")
    add("--address", default="127.0.0.1", help="of rank 0 [127.0.0.1]")
    add("--port")
    add("--hook", choices=("none", "fp16", "powersgd"), default="none",
        help="what compresses gradients [none]")
    return parser.parse_args()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def compress(torch, net, hook):
    from torch.distributed.algorithms.ddp_comm_hooks import (
        default_hooks, powerSGD_hook)
    if hook == "fp16":
        net.register_comm_hook(torch.distributed.group.WORLD,
                               default_hooks.fp16_compress_hook)
    elif hook == "powersgd":
        state = powerSGD_hook.PowerSGDState(
            torch.distributed.group.WORLD, matrix_approximation_rank=1,
            start_powerSGD_iter=2)
        net.register_comm_hook(state, powerSGD_hook.powerSGD_hook)


def make_step(torch, options):
    """One step of this rank."""
    if options.work == "gloo":
        gradient = torch.zeros(options.floats)
        return lambda: torch.distributed.all_reduce(gradient)
    if options.work == "lenet":
        import cnn_mnist
        net = cnn_mnist.torch_net(torch, cnn_mnist.MODELS["lenet"])
        images, classes = torch.randn(options.batch, 1, 28, 28), 10
    else:
        import alexnet
        net = alexnet.torch_net(torch)
        images = torch.randn(options.batch, *alexnet.IMAGE)
        classes = alexnet.CLASSES
    labels = torch.randint(classes, (options.batch,))
    net = torch.nn.parallel.DistributedDataParallel(net)
    compress(torch, net, options.hook)
    optimizer = torch.optim.SGD(net.parameters(), LEARNING_RATE)

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(images), labels).backward()
        optimizer.step()
    return step


def be_rank(options):
    import torch
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    torch.distributed.init_process_group(
        "gloo", init_method=f"tcp://{options.address}:{options.port}",
        rank=options.rank, world_size=options.workers)
    step = make_step(torch, options)
    for _ in range(WARM_STEPS):
        step()
    begin = time.monotonic()
    for _ in range(WARM_STEPS):
        step()
    each = (time.monotonic() - begin) / WARM_STEPS
    count = torch.tensor([max(3, int(options.seconds / each))])
    torch.distributed.broadcast(count, 0)
    begin = time.monotonic()
    for _ in range(int(count)):
        step()
    rate = int(count) / (time.monotonic() - begin)
    if options.rank == 0:
        print(json.dumps({
            "examples_per_s": rate * options.batch * options.workers,
            "us": 1e6 / rate}))
    # Otherwise its threads may outlive what they use and crash the process.
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def main():
    options = parse_arguments()
    if options.rank is not None:
        be_rank(options)
        return
    words = [sys.executable, __file__, *sys.argv[1:], "--port",
             str(free_port())]
    ranks = [subprocess.Popen([*words, "--rank", str(rank)], env=os.environ)
             for rank in range(options.workers)]
    sys.exit(max(rank.wait() for rank in ranks))


if __name__ == "__main__":
    main()
