"""Training of transformers as neutral work: memory, operators and communication of a step."""
