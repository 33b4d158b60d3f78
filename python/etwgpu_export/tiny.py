"""Small Llama-, Qwen2- and Qwen3-style models with random weights, tied and untied, and their goldens."""

import sys
from pathlib import Path
from typing import Any

import torch

from etwgpu_export import cache, goldens, int4, lower, perplexity
from etwgpu_export.progress import stage

BOUND = 96
CONTEXT = 160
STEPS = 8

LLAMA = {"dim": 96, "n_layers": 2, "n_heads": 6, "n_kv_heads": 2, "hidden_dim": 160, "norm_eps": 1e-5, "rope_theta": 1e4}
QWEN2 = LLAMA | {"norm_eps": 1e-6, "rope_theta": 1e6, "use_hf_rope": True, "attention_qkv_bias": True}
QWEN3 = {
    "dim": 64, "n_layers": 2, "n_heads": 4, "n_kv_heads": 1, "head_dim": 32, "hidden_dim": 192, "norm_eps": 1e-6,
    "rope_theta": 1e6, "use_hf_rope": True, "use_qk_norm": True, "qk_norm_before_rope": True,
}
FAMILIES = {
    "llama": LLAMA | {"vocab_size": 300},
    "llama_tied": LLAMA | {"vocab_size": 384, "dim": 64, "n_heads": 4, "n_layers": 3},
    "qwen2": QWEN2 | {"vocab_size": 320},
    "qwen2_tied": QWEN2 | {"vocab_size": 260, "n_heads": 3, "n_kv_heads": 3},
    "qwen3": QWEN3 | {"vocab_size": 320},
    "qwen3_tied": QWEN3 | {"vocab_size": 332, "dim": 128, "n_kv_heads": 2},
}
ALL_LOGITS = "llama_all_logits"


def main() -> None:
    """Fills the cache's folder `tiny`."""
    cache.ensure("tiny", cache.files(sys.modules[__name__], lower, int4, goldens, perplexity), _write)


def _write(folder: Path) -> None:
    for seed, (name, params) in enumerate(FAMILIES.items()):
        checkpoint = random_checkpoint(params, tied=name.endswith("_tied"), seed=seed)
        _write_model(folder, lower.Model(name, params, checkpoint, BOUND, CONTEXT), seed)
    params, seed = FAMILIES["llama"], 0
    checkpoint = random_checkpoint(params, tied=False, seed=seed)
    eager = _write_model(folder, lower.Model(ALL_LOGITS, params, checkpoint, BOUND, CONTEXT, all_logits=True), seed)
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(params["vocab_size"], (2 * BOUND + 50,), generator=generator).tolist()
    perplexity.write(folder / ALL_LOGITS, eager, tokens, BOUND)


def _write_model(folder: Path, model: lower.Model, seed: int) -> torch.nn.Module:
    pte, eager = lower.export(model)
    (folder / f"{model.name}.pte").write_bytes(pte)
    with stage(f"{model.name}: golden logits"):
        cases = _cases(model.params["vocab_size"], seed)
        goldens.record(eager, BOUND, CONTEXT, cases).write(folder / model.name)
    return eager


def _cases(vocab: int, seed: int) -> list[goldens.Case]:
    generator = torch.Generator().manual_seed(seed + 1000)
    prompt = torch.randint(vocab, (BOUND + 16,), generator=generator).tolist()
    pieces = {
        "1": [1],
        "2": [2],
        "7": [7],
        "64": [64],
        "bound": [BOUND],
        "2 token by token": [1, 1],
        "7 in chunks": [2, 5],
        "64 in chunks": [33, 31],
        "bound in chunks": [64, BOUND - 64],
        "beyond the bound in chunks": [BOUND, 16],
    }
    return [goldens.Case(name, _split(prompt, lengths), STEPS) for name, lengths in pieces.items()]


def _split(tokens: list[int], lengths: list[int]) -> list[list[int]]:
    ends = [sum(lengths[: index + 1]) for index in range(len(lengths))]
    return [tokens[end - length : end] for end, length in zip(ends, lengths)]


def random_checkpoint(params: dict[str, Any], tied: bool, seed: int) -> dict[str, torch.Tensor]:
    """Weights that keep activations near 1, so that logits differ clearly from token to token."""
    generator = torch.Generator().manual_seed(seed)
    dim, hidden, vocab = params["dim"], params["hidden_dim"], params["vocab_size"]
    head_dim = params.get("head_dim", dim // params["n_heads"])
    q_rows, kv_rows = params["n_heads"] * head_dim, params["n_kv_heads"] * head_dim

    def matrix(rows: int, columns: int) -> torch.Tensor:
        return torch.randn(rows, columns, generator=generator) / columns**0.5

    def vector(size: int, mean: float) -> torch.Tensor:
        return mean + 0.2 * torch.randn(size, generator=generator)

    weights = {"tok_embeddings.weight": 3 * matrix(vocab, dim), "norm.weight": vector(dim, 1.0)}
    weights["output.weight"] = weights["tok_embeddings.weight"] if tied else 3 * matrix(vocab, dim)
    shapes = {
        "attention.wq": (q_rows, dim), "attention.wk": (kv_rows, dim), "attention.wv": (kv_rows, dim),
        "attention.wo": (dim, q_rows), "feed_forward.w1": (hidden, dim), "feed_forward.w2": (dim, hidden),
        "feed_forward.w3": (hidden, dim),
    }
    for layer in range(params["n_layers"]):
        prefix = f"layers.{layer}."
        for name, (rows, columns) in shapes.items():
            weights[f"{prefix}{name}.weight"] = matrix(rows, columns)
        for name in ("attention_norm", "ffn_norm"):
            weights[f"{prefix}{name}.weight"] = vector(dim, 1.0)
        if params.get("attention_qkv_bias"):
            for name, rows in (("wq", q_rows), ("wk", kv_rows), ("wv", kv_rows)):
                weights[f"{prefix}attention.{name}.bias"] = vector(rows, 0.0)
        if params.get("use_qk_norm"):
            for name in ("q_norm_fn", "k_norm_fn"):
                weights[f"{prefix}attention.{name}.weight"] = vector(head_dim, 1.0)
    return weights


if __name__ == "__main__":
    main()
