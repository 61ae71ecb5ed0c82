"""Layers, activations and initialisers: pure functions of one sample, with parameters."""
