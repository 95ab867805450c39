# The image: the one binary on a small system, as a user without rights, with all data in /data.
#   docker build --build-arg BUILD_COMMIT=$(git rev-parse HEAD) -t slipway .
#   docker run -p 7080:7080 -v slipway:/data -e SLIPWAY_ACCESS_URL=http://localhost:7080 slipway
FROM oven/bun:1.4.5 AS build
WORKDIR /build
COPY package.json bun.lock bunfig.toml tsconfig.json ./
RUN bun install --frozen-lockfile
COPY src ./src
COPY actors ./actors
COPY db ./db
ARG BUILD_COMMIT=""
RUN BUILD_COMMIT=$BUILD_COMMIT bun src/build.ts && mkdir -m 0700 /build/data

# glibc, certificates, and the tools that workspaces of the template `local` run with; the server itself needs none of them.
FROM debian:13-slim
RUN apt-get update \
  && apt-get install --yes --no-install-recommends ca-certificates git openssh-client tini \
  && rm -rf /var/lib/apt/lists/* \
  && useradd --system --uid 10001 --user-group --home-dir /data --shell /usr/sbin/nologin slipway
COPY --from=build --chown=slipway:slipway /build/data /data
COPY --from=build /build/dist/slipway /usr/local/lib/slipway/slipway
RUN ln -s ../lib/slipway/slipway /usr/local/bin/slipway && echo image > /usr/local/lib/slipway/installed-by
COPY LICENSE /usr/share/doc/slipway/LICENSE
USER slipway
WORKDIR /data
ENV SLIPWAY_DATA_DIR=/data SLIPWAY_ADDRESS=0.0.0.0:7080
VOLUME /data
EXPOSE 7080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 CMD ["/usr/local/bin/slipway", "health"]
# tini reaps what workspaces leave behind; the server is told to stop by the signal it passes on.
ENTRYPOINT ["/usr/bin/tini", "--", "/usr/local/bin/slipway"]
CMD ["serve"]
