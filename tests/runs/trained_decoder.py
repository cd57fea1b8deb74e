"""A small decoder that is trained with torch on random tokens; tells each step as nanoGPT does."""

import sys
import time

import torch
from torch import nn
from torch.nn import functional

LAYERS, HIDDEN, HEADS, VOCAB, TOKENS, BATCH = 4, 256, 8, 2000, 128, 4


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before_attention, self.before_feed_forward = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.heads, self.out = nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.up, self.down = nn.Linear(HIDDEN, 4 * HIDDEN), nn.Linear(4 * HIDDEN, HIDDEN)

    def forward(self, stream):
        shape = (*stream.shape[:2], HEADS, HIDDEN // HEADS)
        heads = (part.view(shape).transpose(1, 2) for part in self.heads(self.before_attention(stream)).chunk(3, -1))
        mixed = functional.scaled_dot_product_attention(*heads, is_causal=True)
        stream = stream + self.out(mixed.transpose(1, 2).reshape(stream.shape))
        return stream + self.down(functional.gelu(self.up(self.before_feed_forward(stream))))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCAB, HIDDEN), nn.Embedding(TOKENS, HIDDEN)
        self.blocks, self.norm = nn.Sequential(*(Block() for _ in range(LAYERS))), nn.LayerNorm(HIDDEN)

    def forward(self, tokens):
        stream = self.tokens(tokens) + self.places.weight
        return self.norm(self.blocks(stream)) @ self.tokens.weight.T


torch.manual_seed(0)
model = Decoder()
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
tokens = torch.randint(VOCAB, (BATCH, TOKENS + 1))
last = time.perf_counter()
for step in range(int(sys.argv[1])):
    loss = functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    now = time.perf_counter()
    sys.stdout.write(f"iter {step}: loss {loss.item():.4f}, time {(now - last) * 1000:.2f}ms\n")
    sys.stdout.flush()
    last = now
