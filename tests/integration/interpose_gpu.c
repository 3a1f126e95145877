/* A runtime of GPUs whose memory is the host's, for a machine without any; before libmpi. It has as many
 * GPUs as the environment's GPUS says; with GPU_LOSES=1 the last of 100 doubles arrives wrong. */
#include <stdlib.h>
#include <string.h>

static int number(const char *name) { return getenv(name) ? atoi(getenv(name)) : 0; }

int cudaGetDeviceCount(int *count) { return (*count = number("GPUS")) ? 0 : 100; }
int cudaSetDevice(int device) { return device < number("GPUS") ? 0 : 101; }
int cudaMalloc(void **memory, size_t bytes) { return (*memory = malloc(bytes)) ? 0 : 2; }
int cudaFree(void *memory) { free(memory); return 0; }
int cudaDeviceSynchronize(void) { return 0; }
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind)
{
    int loses = kind == 1 && bytes == 856 && number("GPU_LOSES"); /* 100 doubles and a guard of 7 */
    memcpy(to, from, bytes);
    if (loses)
        ((char *) to)[799] ^= 1;
    return 0;
}
