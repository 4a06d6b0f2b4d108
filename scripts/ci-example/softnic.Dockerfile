# An image with the software device in front of libc and libibverbs: whatever runs in it finds soft0 and soft1.
#
#   docker build -f scripts/ci-example/softnic.Dockerfile -t softnic .          (in a clone of gdrperf)
#   docker run --rm softnic ibv_devinfo
#   docker run --rm -v "$PWD:/work" -w /work softnic ./my_verbs_test
#
# No privileges, no device files, no kernel modules. Two containers reach each other with one network
# namespace: docker run --network container:OTHER.
FROM debian:12 AS build
COPY . /gdrperf
WORKDIR /gdrperf
RUN apt-get update && scripts/install-deps build && \
    meson setup /build --buildtype=release -Dtests=disabled -Dbench=disabled && \
    ninja -C /build softnic/src/libgdrperf_softnic.so softnic/src/standin/libibverbs.so.1.18.0

FROM debian:12
RUN apt-get update && apt-get install -y --no-install-recommends libibverbs1 ibverbs-utils libfmt9 && \
    rm -rf /var/lib/apt/lists/*
COPY --from=build /build/softnic/src/libgdrperf_softnic.so /usr/local/lib/
COPY --from=build /build/softnic/src/standin/libibverbs.so.1.18.0 /usr/local/lib/softnic/libibverbs.so.1
ENV LD_PRELOAD=/usr/local/lib/libgdrperf_softnic.so
