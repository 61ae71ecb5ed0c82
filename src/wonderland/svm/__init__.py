"""Support vector machines, linear and with kernels, each with its proof of optimality."""
