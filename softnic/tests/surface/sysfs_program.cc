#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

/// Reads the class folder of a device in as many ways as C and C++ know, and says
/// what it found: sysfs_test.py compares.
namespace fs = std::filesystem;

static void tell_tree(const fs::path& top) {
  int files = 0, folders = 0, links = 0;
  for (const auto& it : fs::recursive_directory_iterator(fs::canonical(top))) {
    if (it.is_symlink()) {
      ++links;
    } else if (it.is_directory()) {
      ++folders;
    } else {
      std::ifstream in(it.path());
      std::string text;
      if (!std::getline(in, text)) std::cout << "unreadable " << it.path() << "\n";
      ++files;
    }
  }
  std::cout << "tree files " << files << " folders " << folders << " links " << links << "\n";
}

int main(int, char** arguments) {
  const std::string device = arguments[1];
  const fs::path top = "/sys/class/infiniband/" + device;
  tell_tree(top);
  std::cout << "link " << fs::read_symlink(top).string() << "\n";
  std::cout << "canonical " << fs::canonical(top / "device").string() << "\n";
  char* real = ::realpath((top / "device/infiniband/../infiniband" / device).c_str(), nullptr);
  std::cout << "realpath " << (real != nullptr ? real : "none") << "\n";
  std::free(real);

  dirent** names = nullptr;
  const int count = ::scandir((top / "ports/1/gids").c_str(), &names, nullptr, ::alphasort);
  std::cout << "scandir " << count << "\n";
  for (int i = 0; i < count; ++i) std::free(names[i]);
  std::free(names);

  glob_t found{};
  ::glob(("/sys/class/infiniband/" + device + "/ports/*/st*te").c_str(), 0, nullptr, &found);
  std::cout << "glob " << (found.gl_pathc == 1 ? found.gl_pathv[0] : "none") << "\n";
  ::globfree(&found);

  const int folder = ::open(top.c_str(), O_RDONLY | O_DIRECTORY);
  const int fd = ::openat(folder, "ports/1/state", O_RDONLY);
  char text[64] = {};
  std::cout << "openat " << (::read(fd, text, sizeof text - 1) > 0 ? text : "none\n");
  struct stat opened, named;
  ::fstat(folder, &opened);
  ::stat(top.c_str(), &named);
  std::cout << "same " << (opened.st_ino == named.st_ino && S_ISDIR(opened.st_mode)) << "\n";
  std::cout << "fstatat " << ::fstatat(folder, "device", &named, AT_SYMLINK_NOFOLLOW) << S_ISLNK(named.st_mode) << "\n";
  std::cout << "faccessat " << ::faccessat(folder, "fw_ver", R_OK, 0) << ::faccessat(folder, "fw_ver", W_OK, 0) << "\n";
  std::cout << "absent " << ::access((top / "nothing").c_str(), F_OK) << fs::exists(top / "ports/2") << "\n";

  std::string verbs;
  for (const auto& it : fs::directory_iterator("/sys/class/infiniband_verbs")) {
    std::string name;
    std::getline(std::ifstream(it.path() / "ibdev") >> std::ws, name);
    if (name == device) verbs = it.path().filename();
  }
  const std::string node = "/dev/infiniband/" + verbs;
  std::string number;
  std::getline(std::ifstream("/sys/class/infiniband_verbs/" + verbs + "/dev"), number);
  struct stat status = {};
  std::cout << "node " << ::stat(node.c_str(), &status) << S_ISCHR(status.st_mode)
            << ::access(node.c_str(), R_OK | W_OK) << " "
            << (number == std::to_string(status.st_rdev >> 8 & 0xfff) + ":" + std::to_string(status.st_rdev & 0xff))
            << "\n";
  const int opened_node = ::open(node.c_str(), O_RDWR);
  std::cout << "opened " << (opened_node >= 0) << "\n";
  return 0;
}
