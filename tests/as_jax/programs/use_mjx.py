"""Simulate a pendulum."""

import jax
import mujoco
from mujoco import mjx

XML = """<mujoco><worldbody><body><joint type="hinge" axis="0 1 0"/><geom size=".1" pos="0 0 -.5"/></body></worldbody>
</mujoco>"""
model = mujoco.MjModel.from_xml_string(XML)
on_device = mjx.put_model(model)
data = mjx.make_data(on_device).replace(qvel=jax.numpy.ones(1))
step = jax.jit(mjx.step)
for _ in range(5):
    data = step(on_device, data)
assert abs(float(data.qpos[0])) > 0.005
