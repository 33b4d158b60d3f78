"""Exports the programs that the demo and the tests run, with golden logits and perplexity from eager PyTorch.

`python -m etwgpu_export.NAME` writes to the user's cache, for NAME `smollm2`, `smollm2_perplexity` and `tiny`; none needs the
delegate or a GPU.
"""
