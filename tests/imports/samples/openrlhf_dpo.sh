read -r -d '' training_commands <<EOF
openrlhf.cli.train_dpo \
   --train.batch_size 256 \
   --train.micro_batch_size 1 \
   --model.model_name_or_path meta-llama/Meta-Llama-3-8B \
   --ds.param_dtype bf16 \
   --data.max_len 8192 \
   --ds.zero_stage 3 \
   --adam.lr 5e-7 \
   --ds.lora.rank 64 \
   --model.gradient_checkpointing_enable
EOF

if [[ ${1} != "slurm" ]]; then
    deepspeed --module $training_commands
fi
