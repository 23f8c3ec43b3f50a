"""Runs an ONNX file with ONNX Runtime: run.py MODEL.onnx INPUT.npy OUTPUT.npy"""
import sys

import numpy
import onnxruntime

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 2
options.log_severity_level = 3
# Further optimizations compute sums of quantized products in whole numbers, which rounds elsewhere.
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
output = session.run(None, {session.get_inputs()[0].name: numpy.load(sys.argv[2])})[0]
numpy.save(sys.argv[3], output)
