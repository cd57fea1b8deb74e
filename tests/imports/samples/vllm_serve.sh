#!/bin/bash
# start
export HF_HOME=/data
MODEL=meta-llama/Llama-3.1-70B-Instruct
ARGS=(
  --tensor-parallel-size 4   # four
  --max-model-len 32k
)
CUDA_VISIBLE_DEVICES=0,1,2,3 vllm serve $MODEL "${ARGS[@]}" \
    --max-num-seqs 64 --enable-prefix-caching \
    --gpu-memory-utilization=0.92 --quantization fp8 --port ${PORT:-8000} --speculative-config '{"method": "ngram", "num_speculative_tokens": 3}'
