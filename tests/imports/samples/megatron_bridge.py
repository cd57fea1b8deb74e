import torch
from megatron.bridge import AutoBridge
from megatron.bridge.recipes.common import _pretrain_common

LENGTH: int = 16384


def long_llama_config():
    cfg = _pretrain_common()
    name = "meta-llama/Meta-Llama-3-8B"
    cfg.model = AutoBridge.from_hf_pretrained(name).to_megatron_provider(load_weights=False)
    cfg.model.seq_length = LENGTH
    cfg.dataset.seq_length = cfg.model.seq_length
    cfg.model.tensor_model_parallel_size = 2
    cfg.model.pipeline_model_parallel_size = 1
    cfg.model.pipeline_dtype = torch.bfloat16
    cfg.model.context_parallel_size = 2
    cfg.model.sequence_parallel = True
    cfg.model.recompute_granularity = None
    cfg.train.train_iters = 20000
    cfg.train.global_batch_size = 512
    cfg.train.micro_batch_size = 1
    cfg.optimizer.lr = 3e-4
    cfg.ddp.use_distributed_optimizer = True
    cfg.mixed_precision = "bf16_mixed"
    return cfg
