"""A small transformer of torch's own layers, trained compiled, with eager's loss beside it.

python examples/torch_train.py [--steps 60]

It learns to say a sequence backwards. Both models begin with the same weights and see the same batches.
"""

from __future__ import annotations

import argparse
import copy
import time

import profuse as pf

LENGTH, LETTERS, WIDTH = 12, 16, 32


def model():
    """Letters in, a score for each letter out."""
    from torch import nn

    layer = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)

    class Reverser(nn.Module):
        def __init__(self):
            super().__init__()
            self.letters, self.places = nn.Embedding(LETTERS, WIDTH), nn.Embedding(LENGTH, WIDTH)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.scores = nn.Linear(WIDTH, LETTERS)

        def forward(self, x):
            return self.scores(self.encoder(self.letters(x) + self.places.weight))

    return Reverser()


def train(steps: int) -> list[tuple[float, float]]:
    """The losses of each step: compiled, and eager."""
    import torch

    torch.manual_seed(0)
    eager = model()
    compiled = pf.torch.compile(copy.deepcopy(eager))
    losses, seconds = [], [0.0, 0.0]
    optimizers = [torch.optim.Adam(m.parameters(), lr=3e-3) for m in (compiled, eager)]
    for step in range(steps):
        x = torch.randint(0, LETTERS, (32, LENGTH))
        pair = []
        for k, (net, optimizer) in enumerate(zip((compiled, eager), optimizers, strict=True)):
            start = time.perf_counter()
            loss = torch.nn.functional.cross_entropy(net(x).flatten(0, 1), x.flip(1).flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seconds[k] += time.perf_counter() - start
            pair.append(loss.item())
        losses.append(tuple(pair))
        if step % 10 == 0 or step == steps - 1:
            print(f"step {step:4}: loss {pair[0]:.5f} compiled, {pair[1]:.5f} eager")
    print(f"{seconds[0]:.2f} s compiled, {seconds[1]:.2f} s eager, compiles in the background included")
    print(compiled.explain().partition("\n")[0])
    return losses


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    steps = parser.parse_args().steps
    try:
        import torch  # noqa: F401
    except ImportError:
        print("This example needs torch: pip install profuse[torch]")
        return
    train(steps)


if __name__ == "__main__":
    main()
