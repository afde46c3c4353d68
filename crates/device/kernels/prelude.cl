/* What differs between OpenCL C and CUDA C++ in the kernels of this folder.
   LOCAL_PARAMETER comes last in a parameter list: OpenCL passes a pointer, CUDA one dynamic array. */
#ifdef __CUDACC__
#define KERNEL extern "C" __global__ void
#define GLOBAL
#define LOCAL_PARAMETER(type, name)
#define LOCAL_VARIABLE(type, name) extern __shared__ type name[]
#define GROUP_BARRIER() __syncthreads()
#define ATOMIC_ADD(place, value) atomicAdd(place, value)
#define LOCAL_ID() ((uint)threadIdx.x)
#define LOCAL_SIZE() ((uint)blockDim.x)
#define GROUP_ID() ((uint)blockIdx.x)
#define GLOBAL_ID() ((ulong)blockIdx.x * blockDim.x + threadIdx.x)
#define GLOBAL_SIZE() ((ulong)gridDim.x * blockDim.x)
typedef unsigned char uchar;
typedef unsigned int uint;
typedef unsigned long long ulong;
typedef long long i64;
#else
#define KERNEL __kernel void
#define GLOBAL __global
#define LOCAL_PARAMETER(type, name) , __local type *name
#define LOCAL_VARIABLE(type, name)
#define GROUP_BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define ATOMIC_ADD(place, value) atomic_add(place, value)
#define LOCAL_ID() ((uint)get_local_id(0))
#define LOCAL_SIZE() ((uint)get_local_size(0))
#define GROUP_ID() ((uint)get_group_id(0))
#define GLOBAL_ID() ((ulong)get_global_id(0))
#define GLOBAL_SIZE() ((ulong)get_global_size(0))
typedef long i64;
#endif
