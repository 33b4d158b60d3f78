"""A Llama in a GGUF file -> ExecuTorch's parameters and checkpoint, and a tokenizer.json."""

from pathlib import Path
from typing import Any

import gguf
import numpy
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

_GLOBAL = {"token_embd": "tok_embeddings", "output_norm": "norm", "output": "output"}
_LAYER = {
    "attn_q": "attention.wq", "attn_k": "attention.wk", "attn_v": "attention.wv", "attn_output": "attention.wo",
    "attn_norm": "attention_norm", "ffn_gate": "feed_forward.w1", "ffn_down": "feed_forward.w2",
    "ffn_up": "feed_forward.w3", "ffn_norm": "ffn_norm",
}
_CONTROL_TOKEN = 3


class GgufLlama:
    """One GGUF file of architecture `llama` with a byte-level BPE vocabulary."""

    def __init__(self, path: Path) -> None:
        self._reader = gguf.GGUFReader(path)
        found = self._value("general.architecture"), self._value("tokenizer.ggml.pre")
        if found != ("llama", "smollm"):
            raise ValueError(f"{path}: architecture and pre-tokenizer are {found}, expected ('llama', 'smollm')")

    def params(self) -> dict[str, Any]:
        """The fields of ExecuTorch's ModelArgs."""
        return {
            "dim": self._value("llama.embedding_length"),
            "n_layers": self._value("llama.block_count"),
            "n_heads": self._value("llama.attention.head_count"),
            "n_kv_heads": self._value("llama.attention.head_count_kv"),
            "hidden_dim": self._value("llama.feed_forward_length"),
            "vocab_size": self._value("llama.vocab_size"),
            "norm_eps": self._value("llama.attention.layer_norm_rms_epsilon"),
            "rope_theta": self._value("llama.rope.freq_base"),
        }

    def checkpoint(self) -> dict[str, torch.Tensor]:
        """f32 weights by ExecuTorch's names. GGUF stores q and k in the interleaved rope order, which is ExecuTorch's too."""
        weights = {}
        for tensor in self._reader.tensors:
            values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(numpy.float32)
            weights[_executorch_name(tensor.name)] = torch.from_numpy(values)
        weights.setdefault("output.weight", weights["tok_embeddings.weight"])
        return weights

    def end_tokens(self) -> list[int]:
        """The ids that end a text or a chat turn."""
        names = self._value("tokenizer.ggml.tokens")
        return sorted({self._value("tokenizer.ggml.eos_token_id"), names.index("<|endoftext|>")})

    def begin_token(self) -> int:
        """The id that may begin a text."""
        return self._value("tokenizer.ggml.bos_token_id")

    def tokenizer(self) -> Tokenizer:
        """The tokenizer: digits one by one, then byte-level BPE; nothing is added around a text."""
        names = self._value("tokenizer.ggml.tokens")
        merges = [tuple(merge.split(" ")) for merge in self._value("tokenizer.ggml.merges")]
        vocabulary = {name: index for index, name in enumerate(names)}
        tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ])
        tokenizer.decoder = decoders.ByteLevel()
        types = self._value("tokenizer.ggml.token_type")
        control = [name for name, kind in zip(names, types) if kind == _CONTROL_TOKEN]
        tokenizer.add_special_tokens([AddedToken(name, special=True) for name in control])
        return tokenizer

    def _value(self, key: str) -> Any:
        field = self._reader.get_field(key)
        if field is None:
            raise ValueError(f"the GGUF file has no field {key}")
        return field.contents()


def _executorch_name(name: str) -> str:
    parts = name.removesuffix(".weight").split(".")
    if len(parts) == 1 and parts[0] in _GLOBAL:
        return f"{_GLOBAL[parts[0]]}.weight"
    if len(parts) == 3 and parts[0] == "blk" and parts[2] in _LAYER:
        return f"layers.{parts[1]}.{_LAYER[parts[2]]}.weight"
    raise ValueError(f"the GGUF file holds {name}, which ExecuTorch's llama model has no place for")
