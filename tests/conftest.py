"""Every test runs under the plugin that starts the MPI ones (launcher)."""

from hypothesis import settings

pytest_plugins = ["launcher", "pytester"]

# how long an example takes says nothing on a busy machine
settings.register_profile("isthmus", deadline=None)
settings.load_profile("isthmus")
