/// Marks a function that the host and a device compute alike.
#pragma once

#ifdef __CUDACC__
#define STARLING_HOST_DEVICE __host__ __device__
#else
#define STARLING_HOST_DEVICE
#endif
