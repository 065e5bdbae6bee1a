# A self-hosted server: docs/operators/deploy.md says how to build and run it. The root file system can be read-only, because everything
# that changes is in /data and /tmp.

FROM node:24.21.0-bookworm-slim AS build
WORKDIR /opt/underpass
COPY . .
# Installs the packages of the server, builds the Worker and the dashboard, and removes what only the build needs.
RUN --mount=type=cache,target=/root/.npm npm ci --omit=dev \
  # Files of an image have rounded modification times, from which a start would conclude that the bundles are outdated. It
  # does not compare them without this source.
  && rm workers/index.ts

FROM node:24.21.0-bookworm-slim
# PostgreSQL refuses to run as root, so that nothing does. The home directory does not exist, so that no program writes to it.
RUN useradd --system --uid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin underpass \
  && install -d -o underpass -g underpass -m 0700 /data
WORKDIR /opt/underpass
COPY --from=build /opt/underpass .
ENV NODE_ENV=production \
  HOST=0.0.0.0 \
  PORT=8787 \
  DATA_DIR=/data \
  npm_config_cache=/tmp/npm \
  npm_config_update_notifier=false
# The cache of compiled modules, which only their user reads: without it, the programs take 75 MiB more.
RUN rm -rf node_modules/.cache && install -d -o underpass -g underpass node_modules/.cache
USER underpass
RUN ["node_modules/.bin/node", "self-host/build/compile-programs.ts"]
VOLUME /data
EXPOSE 8787
# The server stops in order, after requests in flight: docker stop --time 45.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + process.env.PORT + '/ready').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["npm", "start"]
