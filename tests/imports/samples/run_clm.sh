accelerate launch --num_processes 4 --mixed_precision bf16 \
  run_clm.py --model_name_or_path gpt2 --per_device_train_batch_size 4 --gradient_accumulation_steps 2 --gradient_checkpointing --max_steps 100 --output_dir /tmp/x
