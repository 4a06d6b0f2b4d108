/* ThreadSanitizer starts this in place of llvm-symbolizer, which would not start with the library that the program has
   preloaded: that needs the sanitizer. Linked statically, so that this one starts. */
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
  (void)argc;
  unsetenv("LD_PRELOAD");
  unsetenv("LD_LIBRARY_PATH");
  execv(SYMBOLIZER, argv);
  return 127;
}
