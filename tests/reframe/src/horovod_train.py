"""Trains a small network with Horovod on any number of ranks, with the same result on all of them.

    mpiexec -n 4 python3 horovod_train.py [steps]

Each rank has its even share of one set of numbers, and every step takes them all: the mean of the
ranks' gradients is the gradient of the whole, so the loss does not depend on how many ranks there
are, but for rounding. First a sum of a long vector is compared with what it must be.
"""

import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
os.environ.setdefault("OMP_NUM_THREADS", "1")

import horovod.tensorflow as hvd
import tensorflow as tf

SAMPLES = 512  # in all; 1, 2, 4, 8 … ranks get an even share
INPUTS = 16
HIDDEN = 64


def share(rank, size):
    """The rank's samples and what is to be learnt of them, made of sines: no random numbers."""
    indices = tf.range(SAMPLES * INPUTS, dtype=tf.float64)
    inputs = tf.reshape(tf.sin(indices * 0.7371), (SAMPLES, INPUTS))
    wanted = tf.reduce_sum(inputs[:, ::2], 1, keepdims=True) * tf.cos(inputs[:, 1:2])
    return inputs[rank::size], wanted[rank::size]


def weights():
    """The same start on every rank."""
    first = tf.reshape(tf.sin(tf.range(INPUTS * HIDDEN, dtype=tf.float64) * 1.31), (INPUTS, HIDDEN))
    second = tf.reshape(tf.sin(tf.range(HIDDEN, dtype=tf.float64) * 2.17), (HIDDEN, 1))
    return [tf.Variable(first / INPUTS**0.5), tf.Variable(second / HIDDEN**0.5)]


def main():
    steps = int(sys.argv[1]) if sys.argv[1:] else 100
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    if SAMPLES % size:
        sys.exit(f"{SAMPLES} samples cannot be shared evenly by {size} ranks")

    long = tf.range(1 << 18, dtype=tf.float64) * (rank + 1)
    summed = hvd.allreduce(long, op=hvd.Sum)
    expected = tf.range(1 << 18, dtype=tf.float64) * (size * (size + 1) / 2)
    if float(tf.reduce_max(tf.abs(summed - expected))) != 0:
        sys.exit(f"rank {rank}: the sum over the ranks is wrong")

    inputs, wanted = share(rank, size)
    variables = weights()
    loss = None
    started = time.perf_counter()
    for _ in range(steps):
        with tf.GradientTape() as tape:
            found = tf.tanh(inputs @ variables[0]) @ variables[1]
            loss = tf.reduce_mean((found - wanted) ** 2)
        gradients = hvd.grouped_allreduce(tape.gradient(loss, variables))
        for variable, gradient in zip(variables, gradients, strict=True):
            variable.assign_sub(0.05 * gradient)
    seconds = time.perf_counter() - started
    whole = float(hvd.allreduce(loss))
    if rank == 0:
        rate = SAMPLES * steps / seconds
        print(f"ranks {size} steps {steps} loss {whole:.10f} samples/s {rate:.1f}")


main()
