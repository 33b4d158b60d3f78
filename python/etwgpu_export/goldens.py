"""Golden logits: what eager PyTorch answers to a list of calls.

Beside NAME.pte, NAME.json holds {"vocab", "bound", "context", "cases": [{"name", "calls": [{"pos", "tokens", "logits"}]}]}
and NAME.f32 little-endian f32. The logits of a call's last token are `vocab` floats from index `logits` on. Each case starts
with empty KV caches.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy
import torch


@dataclass(frozen=True)
class Case:
    """`chunks` of a prompt are fed in order, one call each; then `steps` tokens are fed that greedy decoding chose."""

    name: str
    chunks: Sequence[Sequence[int]]
    steps: int


class Recorder:
    """Runs cases on an eager model and keeps their calls and logits."""

    def __init__(self, model: torch.nn.Module, bound: int, context: int) -> None:
        self._model = model
        self._sizes = {"vocab": int(model.vocab_size), "bound": bound, "context": context}
        self._caches = [buffer for name, buffer in model.named_buffers() if name.endswith(("k_cache", "v_cache"))]
        self._cases: list[dict] = []
        self._logits: list[numpy.ndarray] = []

    def run(self, case: Case) -> list[int]:
        """Records one case and returns the tokens that greedy decoding chose: those fed, and one more."""
        for cache in self._caches:
            cache.zero_()
        calls: list[dict] = []
        for chunk in case.chunks:
            chosen = self._call(calls, chunk)
        tokens = [chosen]
        for _ in range(case.steps):
            tokens.append(self._call(calls, tokens[-1:]))
        self._cases.append({"name": case.name, "calls": calls})
        return tokens

    def write(self, stem: Path) -> None:
        """Writes STEM.json and STEM.f32."""
        stem.with_name(stem.name + ".json").write_text(json.dumps({**self._sizes, "cases": self._cases}))
        numpy.concatenate(self._logits).astype("<f4").tofile(stem.with_name(stem.name + ".f32"))

    @torch.inference_mode()
    def _call(self, calls: list[dict], tokens: Sequence[int]) -> int:
        pos = sum(len(call["tokens"]) for call in calls)
        logits = self._model(torch.tensor([list(tokens)]), {"input_pos": torch.tensor([pos])})
        logits = logits.reshape(-1, self._sizes["vocab"])[-1]
        if not torch.isfinite(logits).all():
            raise RuntimeError(f"logits at position {pos} are not finite")
        calls.append({"pos": pos, "tokens": list(tokens), "logits": len(self._logits) * self._sizes["vocab"]})
        self._logits.append(logits.numpy())
        return int(logits.argmax())


def record(model: torch.nn.Module, bound: int, context: int, cases: Iterable[Case]) -> Recorder:
    """A recorder that has run `cases` in order."""
    recorder = Recorder(model, bound, context)
    for case in cases:
        recorder.run(case)
    return recorder
