"""Sample a posterior by NUTS, fit a guide by SVI, predict."""

import jax
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal

x = jax.random.normal(jax.random.key(0), (50,))
y = 2.0 * x + 0.1 * jax.random.normal(jax.random.key(1), (50,))


def model(x, y=None):
    slope = numpyro.sample("slope", dist.Normal(0, 5))
    noise = numpyro.sample("noise", dist.HalfNormal(1))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(slope * x, noise), obs=y)


mcmc = MCMC(NUTS(model), num_warmup=100, num_samples=100, progress_bar=False)
mcmc.run(jax.random.key(2), x, y)
samples = mcmc.get_samples()
assert abs(samples["slope"].mean() - 2.0) < 0.1
guide = AutoNormal(model)
svi = SVI(model, guide, numpyro.optim.Adam(0.05), Trace_ELBO())
result = svi.run(jax.random.key(3), 300, x, y, progress_bar=False)
assert abs(guide.median(result.params)["slope"] - 2.0) < 0.2
assert Predictive(model, samples)(jax.random.key(4), x)["y"].shape == (100, 50)
