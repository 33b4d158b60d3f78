"""Perplexity of eager PyTorch on a list of tokens.

Beside NAME.pte, a program that gives the logits of all tokens, NAME.tokens holds u32 little-endian tokens and
NAME.perplexity.json {"window", "nll"}: in windows of so many tokens, each from position 0, the mean over every token but
a window's first of -ln of the probability that the model gives it.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy
import torch

from etwgpu_export.progress import stage


@torch.inference_mode()
def mean_nll(model: torch.nn.Module, tokens: Sequence[int], window: int) -> float:
    """The mean of -ln p in nats; `model` gives logits [1, S, vocab] of tokens [1, S]."""
    total, predicted = 0.0, 0
    for part in torch.tensor(tokens).split(window):
        logits = model(part.unsqueeze(0), {"input_pos": torch.tensor([0])})[0]
        total += torch.nn.functional.cross_entropy(logits[:-1].double(), part[1:], reduction="sum").item()
        predicted += len(part) - 1
    return total / predicted


def write(stem: Path, model: torch.nn.Module, tokens: Sequence[int], window: int) -> None:
    """Writes STEM.tokens and STEM.perplexity.json."""
    with stage(f"{stem.name}: perplexity of {len(tokens)} tokens in eager PyTorch"):
        nll = mean_nll(model, tokens, window)
    numpy.array(tokens, "<u4").tofile(stem.with_name(stem.name + ".tokens"))
    stem.with_name(stem.name + ".perplexity.json").write_text(json.dumps({"window": window, "nll": nll}))
