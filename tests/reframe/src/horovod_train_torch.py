"""The training of horovod_train.py by PyTorch: the same samples, weights and steps, and loss.

mpiexec -n 4 python3 horovod_train_torch.py [steps]
"""

import sys
import time

import horovod.torch as hvd
import torch

SAMPLES, INPUTS, HIDDEN = 512, 16, 64  # as there


def sines(count, step, shape):
    """Sines of the multiples of a step: no random numbers."""
    return torch.sin(torch.arange(count, dtype=torch.float64) * step).reshape(shape)


def main():
    steps = int(sys.argv[1]) if sys.argv[1:] else 100
    torch.set_num_threads(1)
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    if SAMPLES % size:
        sys.exit(f"{SAMPLES} samples cannot be shared evenly by {size} ranks")

    long = torch.arange(1 << 18, dtype=torch.float64)
    summed = hvd.allreduce(long * (rank + 1), op=hvd.Sum)
    if float((summed - long * (size * (size + 1) / 2)).abs().max()) != 0:
        sys.exit(f"rank {rank}: the sum over the ranks is wrong")

    inputs = sines(SAMPLES * INPUTS, 0.7371, (SAMPLES, INPUTS))
    wanted = inputs[:, ::2].sum(1, keepdim=True) * torch.cos(inputs[:, 1:2])
    inputs, wanted = inputs[rank::size], wanted[rank::size]
    first = sines(INPUTS * HIDDEN, 1.31, (INPUTS, HIDDEN)) / INPUTS**0.5
    second = sines(HIDDEN, 2.17, (HIDDEN, 1)) / HIDDEN**0.5
    variables = [torch.nn.Parameter(first), torch.nn.Parameter(second)]
    # this optimizer is how programs of PyTorch use Horovod: it adds the gradients up as they come
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(variables, lr=0.05),
        named_parameters=[("first", variables[0]), ("second", variables[1])],
    )
    loss = None
    started = time.perf_counter()
    for _ in range(steps):
        optimizer.zero_grad()
        found = torch.tanh(inputs @ variables[0]) @ variables[1]
        loss = ((found - wanted) ** 2).mean()
        loss.backward()
        optimizer.step()
    seconds = time.perf_counter() - started
    whole = float(hvd.allreduce(loss.detach()))
    if rank == 0:
        rate = SAMPLES * steps / seconds
        print(f"ranks {size} steps {steps} loss {whole:.10f} samples/s {rate:.1f}")


main()
