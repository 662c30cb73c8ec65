"""Reflect: an answer from what a bank knows and believes, by a model with tools, or extractively without one."""
