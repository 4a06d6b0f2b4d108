// A libcuda.so.1 to link to, which is never loaded: the one that the program loads is there before.
