#!/usr/bin/env python3
"""All-reduce over slow links, alternating: paceline's codecs, and PyTorch's
DistributedDataParallel over gloo with its communication hooks.  Each worker is
in a network namespace of its own, one thread each.  As root.

Each round runs every configuration once.  Prints a Markdown table: examples
all workers trained a second, the ratio to DDP without a hook, and, of paceline,
the bytes that all hosts sent in TCP segments compared with those that the
summary counts.  Nothing is encrypted, as with gloo.  See bench/README.md.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from turns import add_out, spread, write_rounds

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests/fault"))
import netns  # noqa: E402

PORT = 2222
LIMIT_S = 600
HEADERS = 14 + 20 + 32  # of a segment: Ethernet, IP, TCP with timestamps
PACELINE = {
    "paceline auto": ["--codec", "auto"],
    "paceline plain": ["--codec", "plain"],
    "paceline bf16": ["--codec", "bf16"],
    "paceline topk": ["--codec", "topk"],
    "paceline H = 8": ["--local-steps", "8"],
}
TORCH = {"DDP": "none", "DDP fp16": "fp16", "DDP PowerSGD": "powersgd"}
BASE = "DDP"


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--paceline", type=pathlib.Path, default=ROOT / "build/paceline")
    add("--python", type=pathlib.Path,
        help="a Python with PyTorch; without it PyTorch is left out")
    add("--model", choices=("lenet", "alexnet"), default="alexnet",
        help="[alexnet]")
    add("--workers", type=int, default=2, help="[2]")
    add("--batch", type=int, default=32, help="of each worker [32]")
    add("--rate", choices=netns.RATES, default="1gbit", help="[1gbit]")
    add("--only", help="configurations, with commas between them [all]")
    add("--steps", type=int, help="of paceline [AlexNet 8, LeNet 400]")
    add("--seconds", type=float, default=5, help="of PyTorch [5]")
    add("--rounds", type=int, default=3, help="[3]")
    add_out(add)
    return parser.parse_args()


def run_all(network, commands, env=None):
    """Run a command on each host; the output of the first."""
    running = [subprocess.Popen(network.command(h, [str(w) for w in words]),
                                stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=env)
               for h, words in enumerate(commands)]
    try:
        texts = [r.communicate(timeout=LIMIT_S) for r in running]
    finally:
        for r in running:
            r.kill()
    for r, (_, error) in zip(running, texts):
        if r.returncode != 0:
            raise RuntimeError(error[-800:])
    return json.loads(texts[0][0].strip().splitlines()[-1]
                      if texts[0][0].lstrip()[0] != "{" else texts[0][0])


def sent(network, hosts):
    """Bytes of TCP payload that these hosts have sent so far."""
    total = 0
    for host in range(hosts):
        path = "/sys/class/net/eth0/statistics/"
        done = subprocess.run(
            network.command(host, ["cat", path + "tx_bytes",
                                   path + "tx_packets"]),
            check=True, capture_output=True, text=True)
        count, packets = map(int, done.stdout.split())
        total += count - packets * HEADERS
    return total


class Paceline:
    def __init__(self, options, name):
        self.options, self.name, self.flags = options, name, PACELINE[name]

    def measure(self, network):
        options = self.options
        lenet = options.model == "lenet"
        steps = options.steps or (400 if lenet else 8)
        addresses = [f"{network.address(h)}:{PORT}"
                     for h in range(options.workers)]
        with tempfile.TemporaryDirectory() as folder:
            cluster = pathlib.Path(folder, "c.json")
            cluster.write_text(json.dumps({"cluster": {
                "chief": addresses[:1], "worker": addresses[1:]}}))
            words = [options.paceline, "train", options.model, "--data",
                     "digits" if lenet else "synthetic", "--cluster", cluster,
                     "--insecure", "--strategy", "allreduce", "--engine",
                     "ring", "--transport", "tcp", "--batch", options.batch, "--steps", steps,
                     "--threads", 1, "--lr", 0.01, "--eval-every", "never",
                     "--checkpoint-every", "never", "--quiet", "--json",
                     *self.flags]
            roles = [["--role", "chief", "--run", f"{folder}/run"]] + \
                [["--role", "worker", "--index", h]
                 for h in range(options.workers - 1)]
            before = sent(network, options.workers)
            summary = run_all(network, [[*words, *role] for role in roles])
            payload = sent(network, options.workers) - before
        return {"rate": summary["examples_per_s"], "payload": payload,
                "counted": summary["bytes_sent"]}


class Torch:
    def __init__(self, options, name):
        self.options, self.name, self.hook = options, name, TORCH[name]

    def measure(self, network):
        options = self.options
        words = [options.python, HERE / "allreduce_torch.py", "--work",
                 options.model, "--workers", options.workers, "--batch",
                 options.batch, "--seconds", options.seconds, "--address",
                 network.address(0), "--port", PORT, "--hook", self.hook]
        found = run_all(network, [[*words, "--rank", r]
                                  for r in range(options.workers)],
                        {"GLOO_SOCKET_IFNAME": "eth0", "PATH": "/usr/bin"})
        return {"rate": found["examples_per_s"]}


def configurations(options):
    names = [*PACELINE, *(TORCH if options.python else [])]
    if options.only:
        names = options.only.split(",")
    return [Paceline(options, n) if n in PACELINE else Torch(options, n)
            for n in names]


def report(options, configs, rounds):
    print(f"{options.model}, {options.workers} workers, batch {options.batch} "
          f"each, links of {options.rate}; {options.rounds} rounds in turns; "
          "median (least-most)\n")
    print("| configuration | examples/s | times DDP | payload, MB "
          "| of the count |\n|---|--:|--:|--:|--:|")
    for config in configs:
        found = [r for r in rounds if config.name in r]
        own = [r[config.name] for r in found]
        ratios = [r[config.name]["rate"] / r[BASE]["rate"] for r in found
                  if BASE in r and config.name != BASE]
        counted = [o for o in own if "payload" in o]
        print(f"| {config.name} | {spread([o['rate'] for o in own], 1)} "
              f"| {spread(ratios, 2)} "
              f"| {spread([o['payload'] * 1e-6 for o in counted], 1)} "
              f"| {spread([o['payload'] / o['counted'] for o in counted], 3)} "
              "|")


def main():
    options = parse_arguments()
    why = netns.why_not()
    if why:
        sys.exit(f"links: {why}")
    netns.remove_leftovers()
    configs = configurations(options)
    rounds = []
    with netns.Network("links", options.workers) as network:
        network.slow(options.rate)
        for number in range(1, options.rounds + 1):
            rounds.append({})
            for config in configs:
                try:
                    found = config.measure(network)
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    print(f"links: left out: {config.name}: {error}",
                          file=sys.stderr)
                    continue
                rounds[-1][config.name] = found
                print(f"links: round {number}, {config.name}: "
                      f"{found['rate']:,.1f} examples/s", file=sys.stderr,
                      flush=True)
    write_rounds(options.out, [{name: r["rate"] for name, r in found.items()}
                               for found in rounds])
    report(options, configs, rounds)


if __name__ == "__main__":
    main()
