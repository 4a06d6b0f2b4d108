// See meson.build.
