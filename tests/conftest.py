"""Every test runs under the plugin that starts the MPI ones (launcher)."""

pytest_plugins = ["launcher", "pytester"]
