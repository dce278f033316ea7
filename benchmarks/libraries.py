"""JAX's libraries on corejax beside JAX: seconds to import, to the first result and per step, in a process of its own.

    python benchmarks/libraries.py --jax PYTHON [--corejax PYTHON] [--rounds 3] [--write PAGE] [PROGRAM...]

Both interpreters have the libraries of tests/as_jax/libraries.txt; one has jax, the other need not. The environment of
`make test-libraries` is one for corejax; with `pip install jax` added to a copy of it, one for JAX. `make
bench-libraries` runs both in one, `JAX_PYTHON`. Times are the least of the rounds, in which the two take turns; the
step is the least of those in three seconds. The command takes five minutes on a machine without other load.

`import` is the import of jax and of the program's libraries, `import of jax` the same without the time that JAX's
process spends in the libraries' own modules, which is the same on both sides. `cpu` are the CPU seconds of the whole
process, which depend less on what else the machine does. The goals, as ratios of corejax's time to JAX's: import 0.7,
first result 0.7, step 1.05.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

GOALS = {"import": 0.7, "import of jax": 0.7, "first": 0.7, "step": 1.05, "cpu": 1.0}
SECONDS = 3  # for which steps are repeated: the least of a few is the machine's load, not the library's time

HEAD = """
import json, resource, sys, time
begin = time.perf_counter()
if {corejax}:
    import corejax_as_jax
    corejax_as_jax.install()
import jax, jax.numpy as jnp
jax_imported = time.perf_counter()
"""

TAIL = """
imported = time.perf_counter()
run, steps = make()
jax.block_until_ready(run())
first = time.perf_counter()
least = 1e9
while time.perf_counter() < first + {seconds}:
    start = time.perf_counter()
    jax.block_until_ready(run())
    least = min(least, time.perf_counter() - start)
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({
    "import": imported - begin, "libraries": imported - jax_imported, "first": first - imported, "step": least / steps,
    "cpu": used.ru_utime + used.ru_stime,
}))
"""

FLAX = """
import optax
from flax import nnx


def make():
    class Network(nnx.Module):
        def __init__(self, rngs):
            self.conv = nnx.Conv(1, 8, (3, 3), rngs=rngs)
            self.norm = nnx.BatchNorm(8, rngs=rngs)
            self.inner, self.outer = nnx.Linear(8, 64, rngs=rngs), nnx.Linear(64, 10, rngs=rngs)

        def __call__(self, x):
            return self.outer(nnx.relu(self.inner(nnx.relu(self.norm(self.conv(x))).mean((1, 2)))))

    network = Network(nnx.Rngs(0))
    optimizer = nnx.Optimizer(network, optax.adam(1e-3), wrt=nnx.Param)
    x, y = jax.random.normal(jax.random.key(0), (32, 16, 16, 1)), jnp.arange(32) % 10

    @nnx.jit
    def step(network, optimizer):
        loss = lambda network: optax.softmax_cross_entropy_with_integer_labels(network(x), y).mean()
        value, grads = nnx.value_and_grad(loss)(network)
        optimizer.update(network, grads)
        return value

    return lambda: step(network, optimizer), 1
"""

DIFFRAX = """
import diffrax, equinox as eqx, optax


def make():
    class Field(eqx.Module):
        mlp: eqx.nn.MLP

        def __call__(self, t, y, args):
            return self.mlp(y)

    field = Field(eqx.nn.MLP(2, 2, 16, 2, key=jax.random.key(0)))
    ts = jnp.linspace(0.0, 1.0, 8)
    targets = jnp.stack([jnp.cos(ts), jnp.sin(ts)], 1)
    optimizer = optax.adam(1e-3)

    @eqx.filter_jit
    def step(field, state):
        def loss(field):
            solution = diffrax.diffeqsolve(
                diffrax.ODETerm(field), diffrax.Tsit5(), 0.0, 1.0, 0.1, targets[0], saveat=diffrax.SaveAt(ts=ts),
                stepsize_controller=diffrax.PIDController(rtol=1e-3, atol=1e-5),
            )
            return jnp.mean((solution.ys - targets) ** 2)

        value, grads = eqx.filter_value_and_grad(loss)(field)
        updates, state = optimizer.update(grads, state)
        return eqx.apply_updates(field, updates), state, value

    state = optimizer.init(eqx.filter(field, eqx.is_array))
    # Each run starts at the same weights: in the course of a fit the last bits of results decide how many steps the
    # solver takes.
    return lambda: step(field, state)[2], 1
"""

NUMPYRO = """
import numpyro, numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS


def make():
    x = jax.random.normal(jax.random.key(0), (100, 3))
    y = x @ jnp.array([1.0, -1.0, 0.5]) > 0

    def model(x, y):
        weights = numpyro.sample("weights", dist.Normal(0, 1).expand([3]).to_event(1))
        numpyro.sample("y", dist.Bernoulli(logits=x @ weights), obs=y)

    mcmc = MCMC(NUTS(model), num_warmup=200, num_samples=200, progress_bar=False)

    def run():
        mcmc.run(jax.random.key(1), x, y)
        return mcmc.get_samples()["weights"]

    return run, 400
"""

MJX = """
import mujoco
from mujoco import mjx
XML = '''<mujoco><worldbody><geom type="plane" size="1 1 .1"/><body pos="0 0 1"><freejoint/><geom size=".1"/>
<body pos=".2 0 0"><joint type="hinge" axis="0 1 0"/><geom type="capsule" size=".03 .1"/></body></body></worldbody>
</mujoco>'''


def make():
    model = mjx.put_model(mujoco.MjModel.from_xml_string(XML))
    data = mjx.make_data(model)
    rollout = jax.jit(lambda data: jax.lax.scan(lambda d, _: (mjx.step(model, d), d.qpos), data, None, length=100)[1])
    return lambda: rollout(data), 100
"""

PROGRAMS = {"flax": FLAX, "equinox+diffrax": DIFFRAX, "numpyro": NUMPYRO, "mjx": MJX}


def measured(python: str, program: str, corejax: bool) -> dict[str, float]:
    """Run a program in a process of its own; return its times."""
    text = HEAD.format(corejax=corejax) + program + TAIL.replace("{seconds}", str(SECONDS))
    options: dict[str, Any] = {"capture_output": True, "text": True, "check": False}
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # otherwise modules that are not installed compile at each import
    with tempfile.TemporaryDirectory() as cache:  # corejax would read the programs that an earlier round compiled
        environment["XDG_CACHE_HOME"] = cache
        result = subprocess.run([python, "-W", "ignore", "-c", text], env=environment, **options)
    if result.returncode != 0:
        sys.exit(f"{python}: {result.stderr[-2000:]}")
    found: dict[str, float] = json.loads(result.stdout.splitlines()[-1])
    return found


def write(page: Path, rows: list[str]) -> None:
    """Replace the table between two comments in a page."""
    begin, end = "<!-- libraries -->\n", "<!-- end of libraries -->\n"
    before, _, rest = page.read_text().partition(begin)
    page.write_text(before + begin + "".join(f"{row}\n" for row in rows) + end + rest.partition(end)[2])


def main() -> None:
    """Measure the programs, print a table, and exit with 1 if a goal is missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--jax", required=True, help="the interpreter of an environment with jax and the libraries")
    parser.add_argument("--corejax", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", type=Path, help="a page to write the table into")
    options = parser.parse_args()
    missed = []
    rows = ["| program | | corejax | JAX | ratio | wanted |", "| --- | --- | ---: | ---: | ---: | ---: |"]
    print(*rows, sep="\n")
    for name in options.programs or PROGRAMS:
        best: list[dict[str, float]] = [{}, {}]
        for _ in range(options.rounds):
            for i, python in enumerate((options.corejax, options.jax)):
                for what, seconds in measured(python, PROGRAMS[name], i == 0).items():
                    best[i][what] = min(seconds, best[i].get(what, seconds))
        for side in best:  # JAX imports all of its modules at once, so that what follows is the libraries' own
            side["import of jax"] = side["import"] - best[1]["libraries"]
        for what, goal in GOALS.items():
            own, other = best[0][what], best[1][what]
            rows.append(f"| {name} | {what} | {own:.4g} s | {other:.4g} s | {own / other:.2f} | {goal} |")
            print(rows[-1], flush=True)
            if own > goal * other:
                missed.append(f"{name}: {what}")
    if options.write:
        write(options.write, rows)
    if missed:
        sys.exit(f"missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
