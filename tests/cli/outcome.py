"""A plan that commands are tried on, and what a command did."""

from __future__ import annotations

PLAN = """\
model: {name: gpt2-small}
training: {seq_len: 1024, micro_batch: 8, steps: 1000}
hardware:
  name: rtx-3060-12gb
"""


class Outcome:
    """What a command did."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    @property
    def refusal(self) -> str:
        """The one line that says what is wrong."""
        assert self.code in (2, 3)
        assert self.err.count("\n") == 1
        assert "Traceback" not in self.err
        return self.err.rstrip("\n")
