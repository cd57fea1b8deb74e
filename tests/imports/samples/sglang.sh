python -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3 --tp 8 --context-length 8192 --max-running-requests 32 --trust-remote-code
