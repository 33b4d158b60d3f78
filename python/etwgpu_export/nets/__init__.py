"""Whole networks with random weights: what they are made of, their programs, and how near to eager PyTorch those must be."""
