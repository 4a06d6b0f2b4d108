/* ThreadSanitizer starts this in place of llvm-symbolizer, which would not start with what the program has preloaded:
   a library that wants the sanitizer. Linked statically, so that this does. */
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
  (void)argc;
  unsetenv("LD_PRELOAD");
  unsetenv("LD_LIBRARY_PATH");
  execv(SYMBOLIZER, argv);
  return 127;
}
