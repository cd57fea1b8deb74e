text-generation-launcher --model-id meta-llama/Llama-3.1-8B-Instruct --num-shard 2 --quantize awq --max-input-tokens 4000 --max-total-tokens 4500
