"""Models of the package transformers, tiny and with random weights, and how each runs through `pf.torch.compile`.

python test/peers/torch_models.py [NAME ...]        prints a line for each
python test/peers/torch_models.py --write           renews torch_models.json, which may only become better
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
TABLE = Path(__file__).with_name("torch_models.json")
RANKS = ("torch", "parts", "whole")  # who runs a model: torch, both, this package
_TEXT = {
    "vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
    "max_position_embeddings": 32, "use_cache": False,
}  # fmt: skip
_GQA = {**_TEXT, "num_key_value_heads": 1, "head_dim": 8, "pad_token_id": 0}
_VISION = {"image_size": 16, "patch_size": 4, "num_channels": 3}
_ENCODER = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
}  # fmt: skip

# The name of a configuration, that of a model, what the configuration is told, and the kind of input.
MODELS: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "bert": ("BertConfig", "BertModel", _TEXT, "text"),
    "roberta": ("RobertaConfig", "RobertaModel", _TEXT, "text"),
    "mpnet": ("MPNetConfig", "MPNetModel", _TEXT, "text"),
    "distilbert": (
        "DistilBertConfig", "DistilBertModel",
        {"vocab_size": 50, "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32, "max_position_embeddings": 32},
        "text",
    ),
    "gpt2": (
        "GPT2Config", "GPT2LMHeadModel",
        {"vocab_size": 50, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32, "use_cache": False,
         "bos_token_id": 1, "eos_token_id": 2},
        "text",
    ),
    "gpt_neox": ("GPTNeoXConfig", "GPTNeoXForCausalLM", _TEXT, "text"),
    "opt": (
        "OPTConfig", "OPTForCausalLM",
        {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "ffn_dim": 32,
         "max_position_embeddings": 32, "word_embed_proj_dim": 16, "use_cache": False},
        "text",
    ),
    "llama": ("LlamaConfig", "LlamaForCausalLM", _GQA, "text"),
    "mistral": ("MistralConfig", "MistralForCausalLM", _GQA, "text"),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM", _GQA, "text"),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", _GQA, "text"),
    "gemma": ("GemmaConfig", "GemmaForCausalLM", _GQA, "text"),
    "gemma2": ("Gemma2Config", "Gemma2ForCausalLM", _GQA, "text"),
    "phi3": ("Phi3Config", "Phi3ForCausalLM", _GQA, "text"),
    "bloom": (
        "BloomConfig", "BloomForCausalLM",
        {"vocab_size": 50, "hidden_size": 16, "n_layer": 2, "n_head": 2, "use_cache": False}, "text",
    ),
    "t5": (
        "T5Config", "T5EncoderModel",
        {"vocab_size": 50, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}, "text",
    ),
    "electra": ("ElectraConfig", "ElectraModel", {**_TEXT, "embedding_size": 16}, "text"),
    "albert": ("AlbertConfig", "AlbertModel", {**_TEXT, "embedding_size": 16}, "text"),
    "deberta_v2": ("DebertaV2Config", "DebertaV2Model", _TEXT, "text"),
    "mixtral": ("MixtralConfig", "MixtralForCausalLM", {**_GQA, "num_local_experts": 2}, "text"),
    "mamba": (
        "MambaConfig", "MambaForCausalLM",
        {"vocab_size": 50, "hidden_size": 16, "state_size": 4, "num_hidden_layers": 2, "use_cache": False}, "text",
    ),
    "resnet": (
        "ResNetConfig", "ResNetForImageClassification",
        {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic"}, "image",
    ),
    "vit": ("ViTConfig", "ViTForImageClassification", {**_ENCODER, **_VISION}, "image"),
    "deit": ("DeiTConfig", "DeiTForImageClassification", {**_ENCODER, **_VISION}, "image"),
    "convnext": (
        "ConvNextConfig", "ConvNextForImageClassification",
        {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2},
        "image",
    ),
    "swin": (
        "SwinConfig", "SwinForImageClassification",
        {"image_size": 16, "patch_size": 2, "embed_dim": 8, "depths": [1, 1], "num_heads": [1, 2], "window_size": 4},
        "image",
    ),
    "mobilenet_v2": ("MobileNetV2Config", "MobileNetV2ForImageClassification", {"depth_multiplier": 0.25}, "image"),
    "efficientnet": (
        "EfficientNetConfig", "EfficientNetForImageClassification",
        {"width_coefficient": 0.25, "depth_coefficient": 0.25, "hidden_dim": 320, "image_size": 16}, "image",
    ),
    "regnet": (
        "RegNetConfig", "RegNetForImageClassification",
        {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "groups_width": 8}, "image",
    ),
    "poolformer": (
        "PoolFormerConfig", "PoolFormerForImageClassification",
        {"hidden_sizes": [8, 16, 16, 16], "depths": [1, 1, 1, 1]}, "image",
    ),
}  # fmt: skip


def model_of(name: str) -> Any:
    """A model in evaluation mode; its weights are the same each time."""
    import torch
    import transformers

    config, model, settings, _ = MODELS[name]
    torch.manual_seed(0)
    return getattr(transformers, model)(getattr(transformers, config)(**settings)).eval()


def inputs_of(name: str) -> dict[str, Any]:
    """A batch of two."""
    import torch

    generator = torch.Generator().manual_seed(1)
    if MODELS[name][3] == "text":
        return {"input_ids": torch.randint(1, 50, (2, 7), generator=generator)}
    size = 32 if name in ("poolformer", "efficientnet", "mobilenet_v2") else 16
    return {"pixel_values": torch.randn(2, 3, size, size, generator=generator)}


def first_result(model: Callable[..., Any], inputs: dict[str, Any]) -> Any:
    """What a model says first: logits, or the last hidden state."""
    return model(**inputs)[0]


def outcome(name: str) -> dict[str, str]:
    """How a model runs in inference and in training; raises AssertionError for wrong values."""
    import profuse as pf
    import torch

    inputs, found = inputs_of(name), {}
    eager = model_of(name)
    for mode in ("inference", "training"):
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        compiled = pf.torch.compile(model_of(name), background=False)
        for _ in range(3):
            with torch.set_grad_enabled(mode == "training"):
                expected, result = first_result(eager, inputs), first_result(compiled, inputs)
            torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)
            if mode == "training":
                eager.zero_grad()
                compiled.zero_grad()
                expected.square().mean().backward()
                result.square().mean().backward()
                for (key, a), b in zip(eager.named_parameters(), compiled.parameters(), strict=True):
                    assert (a.grad is None) <= (b.grad is None or not b.grad.any()), key
                    if a.grad is not None and b.grad is not None:
                        scale = float(a.grad.abs().max()) + 1e-3
                        assert float((a.grad - b.grad).abs().max()) <= 2e-3 * scale, key
        calls = compiled.calls
        breaks = torch._dynamo.utils.counters["graph_break"]
        if calls.counters["torch_calls"] or not calls.functions():
            found[mode] = ("torch: " + "; ".join(calls.reasons or breaks))[:300]
        elif calls.counters["torch_ops"] or breaks:
            left = {op for call in calls.exports() for op, _ in call.parts.left}
            found[mode] = ("parts: " + ", ".join(sorted(left | breaks.keys())))[:300]
        else:
            found[mode] = "whole"
    return found


def rank(text: str) -> int:
    """The better, the higher."""
    return RANKS.index(text.partition(":")[0])


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    table = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    for name in options.names or MODELS:
        start = time.perf_counter()
        try:
            result = outcome(name)
        except Exception as error:
            result = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(name, f"{time.perf_counter() - start:.0f} s", result, flush=True)
        if options.write and "error" not in result:
            table[name] = result
            TABLE.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    sys.exit(main())
