/// STARLING_HOST_DEVICE marks a function that is compiled both for the host and for CUDA devices.
#pragma once

#ifdef __CUDACC__
#define STARLING_HOST_DEVICE __host__ __device__
#else
#define STARLING_HOST_DEVICE
#endif
