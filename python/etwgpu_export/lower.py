"""A checkpoint of the Llama family -> a program for the delegate, and the same 4-bit model in eager PyTorch."""

import copy
import functools
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from etwgpu_export import int4
from etwgpu_export.progress import stage

GROUP_SIZE = 32


@dataclass(frozen=True)
class Model:
    """What ExecuTorch's llama model is built from.

    `params` are the fields of its ModelArgs, `checkpoint` the f32 tensors by its names. One call takes at most `bound`
    tokens, the KV cache holds `context`. `metadata` become constant methods of the program. With `calibration` tokens, the
    4-bit weights are fitted to what they are multiplied with when the model reads these. The program gives the logits
    [1, vocab] of a call's last token, or, if `all_logits`, those of all: [1, S, vocab].
    """

    name: str
    params: dict[str, Any]
    checkpoint: dict[str, torch.Tensor]
    bound: int
    context: int
    metadata: dict[str, Any] = field(default_factory=dict)
    calibration: Sequence[int] = ()
    all_logits: bool = False


def export(model: Model) -> tuple[bytes, torch.nn.Module]:
    """The `.pte` (one delegate and nothing else) and the eager model with the same quantised weights."""
    with stage(f"{model.name}: quantising to 4 bits, groups of {GROUP_SIZE}"):
        importance = _importance(model) if model.calibration else {}
        config = _config(model)
        config.quantization.qmode = "4w"
        config.quantization.use_hqq = False
        config.quantization.group_size = GROUP_SIZE
        config.quantization.embedding_quantize = f"4,{GROUP_SIZE}"
        config.debug.generate_full_logits = model.all_logits
        manager = _load(model, config)
        int4.requantise(manager.model, model.checkpoint, importance, GROUP_SIZE)
        eager = _dequantised(manager.model)
    with stage(f"{model.name}: exporting"):
        manager = manager.export()
        manager.run_canonical_optimizations()
        manager = manager.export_to_edge()
    with stage(f"{model.name}: lowering to the delegate"):
        program = _lower(manager)
    _check_fully_delegated(model.name, program.executorch_program.execution_plan[0])
    return bytes(program.buffer), eager


def _config(model: Model) -> Any:
    from executorch.extension.llm.export.config.llm_config import LlmConfig, ModelType

    config = LlmConfig()
    config.base.model_class = ModelType.llama3_2
    config.base.metadata = json.dumps(model.metadata)
    config.model.use_kv_cache = True
    config.model.use_sdpa_with_kv_cache = True
    # ExecuTorch exports token counts up to max_seq_length - 1.
    config.export.max_seq_length = model.bound + 1
    config.export.max_context_length = model.context
    config.backend.vulkan.enabled = True
    return config


def _load(model: Model, config: Any) -> Any:
    from executorch.examples.models.llama.export_llama_lib import _prepare_for_llama_export

    with tempfile.TemporaryDirectory() as work:
        checkpoint, params = Path(work) / "checkpoint.pth", Path(work) / "params.json"
        torch.save(model.checkpoint, checkpoint)
        params.write_text(json.dumps(model.params))
        config.base.checkpoint, config.base.params = str(checkpoint), str(params)
        return _prepare_for_llama_export(config)


def _importance(model: Model) -> dict[str, torch.Tensor]:
    unquantised = _load(model, _config(model)).model
    return int4.input_importance(unquantised, model.calibration, model.bound)


def _dequantised(quantised: torch.nn.Module) -> torch.nn.Module:
    eager = copy.deepcopy(quantised)
    for module in eager.modules():
        if isinstance(module, torch.nn.Linear):
            module.weight = torch.nn.Parameter(module.weight.dequantize(), requires_grad=False)
    return eager.eval()


def _lower(manager: Any) -> Any:
    from executorch.backends.webgpu.partitioner import WebGPUPartitioner

    _keep_pattern_graphs()
    manager = manager.to_backend([WebGPUPartitioner({"require_dynamic_shapes": True})])
    return manager.to_executorch().export_program


@functools.cache
def _keep_pattern_graphs() -> None:
    """The partitioner traces its fusable patterns anew on every use, which is most of its time; trace them once."""
    from executorch.backends.vulkan.patterns import fusable_patterns

    for entry in fusable_patterns.values():
        if entry.get_graphs_fn is not None:
            entry.get_graphs_fn = functools.cache(entry.get_graphs_fn)


def _check_fully_delegated(name: str, plan: Any) -> None:
    calls = [type(instruction.instr_args).__name__ for instruction in plan.chains[0].instructions]
    if calls != ["DelegateCall"]:
        operators = sorted({operator.name for operator in plan.operators})
        raise RuntimeError(f"{name}: expected one delegate call and nothing else, found {calls} with {operators}")
