"""Exports the programs that the demo and the tests run, with golden logits from eager PyTorch.

`python -m etwgpu_export.smollm2` and `python -m etwgpu_export.tiny` write to the user's cache; neither needs the delegate or
a GPU.
"""
