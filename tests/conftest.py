"""Property tests hold on a busy machine, and find the same examples at every run of a shared build."""

import os

from hypothesis import settings

SHARED = bool(os.environ.get("CI"))

settings.register_profile("default", deadline=None, derandomize=SHARED, max_examples=40 if SHARED else 100)
settings.load_profile("default")
