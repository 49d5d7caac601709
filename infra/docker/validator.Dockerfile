# The validator with its packages of the workspace, without development packages. Build the image at the root:
#   docker build -f infra/docker/validator.Dockerfile -t keyward-validator .
# Pin the base image to a digest: --build-arg NODE_IMAGE=node:22-bookworm-slim@sha256:…
# The image runs with a read-only file system.

ARG NODE_IMAGE=node:22-bookworm-slim
FROM ${NODE_IMAGE} AS workspace
WORKDIR /keyward
COPY package.json pnpm-lock.yaml pnpm-workspace.yaml ./
COPY infra/supply-chain infra/supply-chain
COPY packages packages
COPY services/validator services/validator
# The optional packages, which contain another Node, are left out. uWebSockets.js has binaries for every platform, of which the image keeps one.
RUN node infra/supply-chain/pnpm.mjs install --prod --frozen-lockfile --no-optional --filter "@keyward/validator..." \
 && node infra/supply-chain/verify.ts \
 && keep="uws_linux_$(node -p process.arch)_$(node -p process.versions.modules).node" \
 && find node_modules/.pnpm -name 'uws_*.node' ! -name "$keep" -delete \
 && find node_modules/.pnpm -name "$keep" | grep -q .

FROM ${NODE_IMAGE}
WORKDIR /keyward
# packages/process/src/launch.ts explains these variables and the arguments below.
ENV NODE_ENV=production VALIDATOR_HOST=0.0.0.0 GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=1048576
COPY --from=workspace /keyward /keyward
USER node
EXPOSE 8080 9080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=2s --start-period=60s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:9080/livez').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--single-threaded-gc", "--min-semi-space-size=4", "--max-semi-space-size=4", "--no-memory-reducer", "--disable-sigusr1", "services/validator/src/main.ts"]
