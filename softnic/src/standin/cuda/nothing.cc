// A libcuda.so.1 to link to, which is never loaded: the one that the program loads is there before.
extern "C" int cuInit(unsigned flags);
extern "C" int cuInit(unsigned) { return 3; }  // CUDA_ERROR_NOT_INITIALIZED
