#!/bin/bash
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NUM_NODES=4
DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NUM_NODES
    --master_addr $MASTER_ADDR
)
GPT_MODEL_ARGS=(
    --num-layers 80
    --hidden-size 8192
    --ffn-hidden-size 28672
    --num-attention-heads 64
    --group-query-attention --num-query-groups 8
    --seq-length 8192
    --max-position-embeddings 8192
    --position-embedding-type rope --normalization RMSNorm --swiglu --disable-bias-linear
    --untie-embeddings-and-output-weights
    --vocab-size 128256
)
TRAINING_ARGS="--micro-batch-size 1 --global-batch-size 512 --train-iters 1000 --bf16 --lr 1e-4"
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \
    ${GPT_MODEL_ARGS[@]} \
    $TRAINING_ARGS \
    --tensor-model-parallel-size 8 --pipeline-model-parallel-size 2 --sequence-parallel \
    --num-layers-per-virtual-pipeline-stage 10 \
    --use-distributed-optimizer --recompute-granularity selective --no-mmap-bin-files
