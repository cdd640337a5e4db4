"""A model with random weights, for scripts that show that parts fit together, and not that anything is learned."""

from tokenizers import ByteLevelBPETokenizer
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from trl.chat_template_utils import qwen3_chat_template


def small_model():
    """A Qwen3 of one layer, and a byte-level tokenizer of 512 tokens with Qwen3's special tokens and template."""
    trained = ByteLevelBPETokenizer()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    trained.train_from_iterator([qwen3_chat_template], vocab_size=512, special_tokens=special)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=trained._tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>", chat_template=qwen3_chat_template
    )
    shape = dict(hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1)
    return Qwen3ForCausalLM(Qwen3Config(vocab_size=512, head_dim=16, **shape)), tokenizer
