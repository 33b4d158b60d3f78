"""Encoders and decoders of text and speech, written from the papers on BERT and on Whisper."""

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    """Heads that attend from x [B, S, C] to `to` [B, T, C]; a mask [.., S, T] of f32 is added to the scores."""

    def __init__(self, width: int, heads: int, key_bias: bool) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.value, self.out = (nn.Linear(width, width) for _ in range(3))
        self.key = nn.Linear(width, width, bias=key_bias)

    def forward(self, x: torch.Tensor, to: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        q, k, v = (
            layer(source).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer, source in ((self.query, x), (self.key, to), (self.value, to))
        )
        scores = q @ k.transpose(2, 3) * q.shape[-1] ** -0.5
        weights = F.softmax(scores if mask is None else scores + mask, -1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


def mlp(width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))


class BertLayer(nn.Module):
    """Norms come after the sums."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention, self.mlp = Attention(width, heads, key_bias=True), mlp(width)
        self.norms = nn.ModuleList([nn.LayerNorm(width, eps=1e-12) for _ in range(2)])

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = self.norms[0](x + self.attention(x, x, mask))
        return self.norms[1](x + self.mlp(x))


class Bert(nn.Module):
    """Tokens and segments [B, S] of int64 and a mask of 1 and 0 [B, S] of f32 -> states [B, S, C] and the pooled first one."""

    def __init__(self, width: int, heads: int, layers: int, vocab: int, positions: int) -> None:
        super().__init__()
        self.tokens, self.segments = nn.Embedding(vocab, width), nn.Embedding(2, width)
        self.positions = nn.Parameter(torch.randn(positions, width))
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList([BertLayer(width, heads) for _ in range(layers)])
        self.pooler = nn.Sequential(nn.Linear(width, width), nn.Tanh())

    def forward(self, tokens: torch.Tensor, segments: torch.Tensor, seen: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.tokens(tokens) + self.segments(segments) + self.positions[: tokens.shape[1]]
        x, mask = self.norm(x), ((seen - 1) * 1e4)[:, None, None, :]
        for layer in self.layers:
            x = layer(x, mask)
        return x, self.pooler(x[:, 0])


class WhisperLayer(nn.Module):
    """Norms come before what they feed; a decoder's layer also attends to the encoder's states."""

    def __init__(self, width: int, heads: int, crosses: bool) -> None:
        super().__init__()
        self.attention, self.mlp = Attention(width, heads, key_bias=False), mlp(width)
        self.cross = Attention(width, heads, key_bias=False) if crosses else None
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(3 if crosses else 2)])

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None = None, heard: torch.Tensor | None = None
    ) -> torch.Tensor:
        y = self.norms[0](x)
        x = x + self.attention(y, y, mask)
        if self.cross is not None:
            x = x + self.cross(self.norms[2](x), heard)
        return x + self.mlp(self.norms[1](x))


class WhisperEncoder(nn.Module):
    """Mel bands [B, 80, 2 T] -> states [B, T, C]."""

    def __init__(self, width: int, heads: int, layers: int, frames: int) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv1d(80, width, 3, padding=1), nn.GELU(), nn.Conv1d(width, width, 3, 2, 1), nn.GELU()
        )
        angles = torch.arange(frames)[:, None] * torch.exp(torch.linspace(0, -9.21, width // 2))
        self.register_buffer("positions", torch.cat([angles.sin(), angles.cos()], 1))
        self.layers = nn.ModuleList([WhisperLayer(width, heads, crosses=False) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)

    def forward(self, mel: torch.Tensor) -> torch.Tensor:
        x = self.convolutions(mel).transpose(1, 2) + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class WhisperDecoder(nn.Module):
    """Tokens [B, S] of int64 and the encoder's states [B, T, C] -> logits [B, S, vocab]; the table of tokens is used twice."""

    def __init__(self, width: int, heads: int, layers: int, vocab: int, positions: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab, width)
        self.positions = nn.Parameter(torch.randn(positions, width))
        self.register_buffer("mask", torch.full((positions, positions), -1e4).triu(1))
        self.layers = nn.ModuleList([WhisperLayer(width, heads, crosses=True) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: torch.Tensor, heard: torch.Tensor) -> torch.Tensor:
        length = tokens.shape[1]
        x = self.tokens(tokens) + self.positions[:length]
        for layer in self.layers:
            x = layer(x, self.mask[:length, :length], heard)
        return F.linear(self.norm(x), self.tokens.weight)
