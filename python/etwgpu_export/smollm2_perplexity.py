"""SmolLM2-135M-Instruct with the logits of all tokens, and its perplexity on a text in eager PyTorch.

The text is a page of CMake's manual: the pinned wheel has the same everywhere, and it is English that the weights were not
fitted to.
"""

import dataclasses
import sys
from importlib.metadata import files
from pathlib import Path

from etwgpu_export import cache, gguf_llama, int4, lower, perplexity, smollm2

NAME = "smollm2-135m-perplexity"
PAGE = "cmake-buildsystem.7.rst"
TOKENS = 16 * smollm2.BOUND


def main() -> None:
    """Fills the cache's folder of this model."""
    modules = cache.files(sys.modules[__name__], gguf_llama, lower, int4, perplexity, smollm2)
    cache.ensure(NAME, [*modules, smollm2.CALIBRATION, _text_path()], _write)


def _write(folder: Path) -> None:
    model, tokenizer = smollm2.read()
    tokens = tokenizer.encode(_text_path().read_text(encoding="utf-8")).ids[:TOKENS]
    pte, eager = lower.export(dataclasses.replace(model, name=NAME, all_logits=True))
    (folder / f"{NAME}.pte").write_bytes(pte)
    perplexity.write(folder / NAME, eager, tokens, model.bound)


def _text_path() -> Path:
    found = [Path(str(file.locate())) for file in files("cmake") or [] if file.name == PAGE]
    if len(found) != 1:
        raise RuntimeError(f"PyPI's cmake holds {len(found)} files {PAGE}, expected one")
    return found[0]


if __name__ == "__main__":
    main()
