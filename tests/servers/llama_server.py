"""llama.cpp's own server with one model, as a wheel of PyPI has it: `llama_server.py MODEL NAME`.

Writes its address on a line and ends with its standard input.
"""

import sys

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.model_alias = {sys.argv[2]}
params.hostnames = ["127.0.0.1"]
params.port = 0
# As long as the model was trained for.
params.n_ctx = 0
params.n_parallel = 1
params.warmup = False
params.cpuparams.n_threads = 1
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
