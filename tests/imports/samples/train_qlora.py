"""Fine-tune a model with QLoRA."""

import torch
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig
from trl import SFTConfig, SFTTrainer

MODEL = "Qwen/Qwen2.5-7B-Instruct"
RANK = 64

tokenizer = AutoTokenizer.from_pretrained(MODEL)
packing = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16)
model = AutoModelForCausalLM.from_pretrained(
    MODEL, quantization_config=packing, attn_implementation="flash_attention_2", device_map="auto"
)
adapter = LoraConfig(
    r=RANK,
    lora_alpha=2 * RANK,
    target_modules=["q_proj", "v_proj"],
    task_type="CAUSAL_LM",
)
settings = SFTConfig(
    output_dir="out",
    max_length=4096,
    per_device_train_batch_size=2,
    gradient_accumulation_steps=8,
    max_steps=1000,
    bf16=True,
    optim="paged_adamw_8bit",
)
SFTTrainer(model=model, args=settings, peft_config=adapter).train()
