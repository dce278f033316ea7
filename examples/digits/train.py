"""Learn to read handwritten digits with corejax: jit, vmap, grad and scan on real data, in a few seconds.

python examples/digits/train.py
python examples/digits/train.py --devices 4      # each minibatch is sharded over four devices
python examples/digits/train.py --processes 2    # and over two processes
python examples/digits/train.py --checkpoint run # saves after each epoch, and resumes from there
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import data
import model
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import corejax

GOAL = 0.96  # required accuracy on the test images


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=40, help="passes over the data (default 40)")
    parser.add_argument("--batch", type=int, default=32, help="images in a minibatch (default 32)")
    parser.add_argument("--rate", type=float, default=1e-2, help="first step size of Adam (default 0.01)")
    parser.add_argument("--limit", type=float, default=1.0, help="greatest norm of one image's gradient (default 1)")
    parser.add_argument("--seed", type=int, default=0, help="of weights, split and order (default 0)")
    parser.add_argument("--devices", type=int, default=1, help="devices of a process that share the work (default 1)")
    parser.add_argument("--processes", type=int, default=1, help="processes that share the work (default 1)")
    parser.add_argument(
        "--checkpoint", type=Path, help="directory to save the training in after each epoch, and to go on from"
    )
    parser.add_argument(
        "--picture", type=Path, default=Path(__file__).with_name("predictions.png"), help="PNG to write"
    )
    return parser.parse_args(argv)


def accuracy(params: model.Params, split: data.Split) -> float:
    """Return the share of the images that are classified correctly."""
    return float(np.mean(np.asarray(model.predict(params, split.images)) == split.labels))


def learn(options: argparse.Namespace, train: data.Split, test: data.Split, console: Console) -> model.Params:
    """Train a network, with a progress bar, and return its parameters."""
    rng = np.random.default_rng(options.seed)
    params = model.init(rng)
    state = model.adam_init(params)
    mesh = None
    if corejax.device_count() > 1:
        mesh = corejax.make_mesh((corejax.device_count(),), ("data",))
        params, state = corejax.device_put((params, state), corejax.NamedSharding(mesh, corejax.P()))
    learnt = {"params": params, "adam": state, "epochs": 0, "order": rng.bit_generator.state}
    if options.checkpoint and options.checkpoint.exists():
        learnt = corejax.checkpoints.restore(options.checkpoint, like=learnt)
        params, state, rng.bit_generator.state = learnt["params"], learnt["adam"], learnt["order"]
        console.print(f"goes on after epoch {learnt['epochs']}")
    columns = (
        TextColumn("learning"),
        BarColumn(20),
        MofNCompleteColumn(),
        TextColumn("{task.fields[numbers]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("learning", total=options.epochs, completed=learnt["epochs"], numbers="")
        for i in range(learnt["epochs"], options.epochs):
            rate = options.rate * 0.5 * (1 + np.cos(np.pi * i / options.epochs))  # from full speed to rest
            batches = data.minibatches(train, options.batch, rng)
            if mesh is not None:
                batches = shared_out(batches, mesh)
            params, state, report = model.epoch(
                params, state, batches.images, batches.labels, np.float32(rate), np.float32(options.limit)
            )
            numbers = (
                f"loss {float(report.loss):.4f}, {float(report.clipped):.0%} clipped, test {accuracy(params, test):.2%}"
            )
            progress.update(task, advance=1, numbers=numbers)
            if options.checkpoint:
                learnt = {"params": params, "adam": state, "epochs": i + 1, "order": rng.bit_generator.state}
                corejax.checkpoints.save(options.checkpoint, learnt, overwrite=True)
    return params


def shared_out(batches: data.Split, mesh: corejax.sharding.Mesh) -> data.Split:
    """Shard each minibatch over the devices of a mesh; each process keeps its own part."""
    sharding = corejax.NamedSharding(mesh, corejax.P(None, "data"))
    return data.Split(*[corejax.make_array_from_callback(x.shape, sharding, x.__getitem__) for x in batches])


def several_processes(count: int, argv: Sequence[str]) -> int:
    """Run this program in several connected processes; only the output of the first is shown."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    named = {"COREJAX_COORDINATOR_ADDRESS": f"127.0.0.1:{port}", "COREJAX_NUM_PROCESSES": str(count)}
    running = []
    for i in range(count):
        environment = {**os.environ, **named, "COREJAX_PROCESS_ID": str(i)}
        output = None if i == 0 else subprocess.DEVNULL
        running.append(subprocess.Popen([sys.executable, __file__, *argv], env=environment, stdout=output))
    return max(process.wait() for process in running)


def main(argv: Sequence[str] | None = None) -> int:
    """Train, test and draw; the exit status is 0 if the accuracy exceeds the goal."""
    given = list(sys.argv[1:] if argv is None else argv)
    options = arguments(given)
    if options.batch % (options.devices * options.processes):
        raise SystemExit(f"--batch {options.batch} is no multiple of {options.devices} devices x {options.processes}")
    if options.devices > 1:
        corejax.config.update("num_cpu_devices", options.devices)
    if options.processes > 1:
        if "COREJAX_PROCESS_ID" not in os.environ:
            return several_processes(options.processes, given)
        corejax.distributed.initialize()
    console = Console()
    start = time.perf_counter()
    train, test = data.load(seed=options.seed)
    console.print(f"{len(train.labels)} images to learn from, {len(test.labels)} to test with")
    params = learn(options, train, test, console)

    reached = accuracy(params, test)
    console.print(f"test accuracy {reached:.2%} after {time.perf_counter() - start:.1f} s")

    if corejax.process_index():
        return 0
    import picture  # matplotlib takes a moment to import, so not before the results

    images, labels = np.asarray(test.images), np.asarray(test.labels)
    picture.save(options.picture, images, labels, np.asarray(model.probabilities(params, images)))
    console.print(f"predictions drawn to {options.picture}")
    if reached <= GOAL:
        console.print(f"[red]that is not above {GOAL:.0%}[/red]")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
