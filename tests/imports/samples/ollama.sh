ollama run llama3.1:8b-instruct-q8_0
