# The management service with its packages of the workspace, without development packages. Build the image at the root:
#   docker build -f infra/docker/management.Dockerfile -t keyward-management .
# Pin the base image to a digest: --build-arg NODE_IMAGE=node:24-trixie-slim@sha256:…
# The image runs with a read-only file system.

ARG NODE_IMAGE=node:24-trixie-slim
FROM ${NODE_IMAGE} AS console
WORKDIR /keyward
COPY package.json pnpm-lock.yaml pnpm-workspace.yaml ./
COPY infra/supply-chain infra/supply-chain
COPY packages packages
RUN node infra/supply-chain/pnpm.mjs install --frozen-lockfile --filter "@keyward/console..." \
 && node packages/console/build/main.ts

FROM ${NODE_IMAGE} AS workspace
WORKDIR /keyward
COPY package.json pnpm-lock.yaml pnpm-workspace.yaml ./
COPY infra/supply-chain infra/supply-chain
COPY packages packages
COPY services/management services/management
# The optional packages, which contain another Node, are left out.
RUN node infra/supply-chain/pnpm.mjs install --prod --frozen-lockfile --no-optional --filter "@keyward/management..." \
 && node infra/supply-chain/verify.ts

FROM ${NODE_IMAGE}
WORKDIR /keyward
ENV NODE_ENV=production KEYWARD_MANAGEMENT_HOST=0.0.0.0
COPY --from=workspace /keyward /keyward
COPY --from=console /keyward/packages/console/dist /keyward/packages/console/dist
USER node
EXPOSE 8081 9081
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=2s --start-period=20s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:9081/livez').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--disable-sigusr1", "services/management/src/main.ts"]
