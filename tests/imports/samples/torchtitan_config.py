from torchtitan.config import ParallelismConfig
from torchtitan.distributed.activation_checkpoint import FullAC
from torchtitan.models.llama3.config_registry import llama3_8b
from torchtitan.trainer import Trainer


def llama3_8b_long() -> Trainer.Config:
    config = llama3_8b()
    config.training.seq_len = 16384
    config.training.global_batch_size = 32
    config.parallelism = ParallelismConfig(data_parallel_shard_degree=8, tensor_parallel_degree=2)
    config.activation_checkpoint = FullAC.Config()
    config.compile.enable = True
    return config
