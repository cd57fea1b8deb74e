"""Property tests hold on a busy machine, and find the same examples at every run of a shared build."""

import os

from hypothesis import settings

settings.register_profile("default", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("default")
