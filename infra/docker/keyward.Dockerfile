# Everything in one container, to try Keyward or to run a small installation: both services behind a gateway, the console and Postgres, or
# your own Postgres with KEYWARD_DATABASE_URL. Build the image at the root, and run it:
#   docker build -f infra/docker/keyward.Dockerfile -t keyward .
#   docker run -p 8000:8000 -v keyward:/data keyward
# Pin the base image to a digest: --build-arg NODE_IMAGE=node:24-trixie-slim@sha256:…

# validator.Dockerfile explains these arguments.
ARG NODE_IMAGE=node:24-trixie-slim
ARG NODE_IMAGE_ARM64=node:22-trixie-slim
ARG NODE_STAGE=node-${TARGETARCH}
FROM ${NODE_IMAGE} AS node-amd64
FROM ${NODE_IMAGE_ARM64} AS node-arm64

FROM ${NODE_STAGE} AS console
WORKDIR /keyward
COPY package.json pnpm-lock.yaml pnpm-workspace.yaml ./
COPY infra/supply-chain infra/supply-chain
COPY packages packages
RUN node infra/supply-chain/pnpm.mjs install --frozen-lockfile --filter "@keyward/console..." \
 && node packages/console/build/main.ts

FROM ${NODE_STAGE} AS workspace
WORKDIR /keyward
COPY package.json pnpm-lock.yaml pnpm-workspace.yaml ./
COPY infra/supply-chain infra/supply-chain
COPY packages packages
COPY services/management services/management
COPY services/validator services/validator
COPY infra/package.json infra/
COPY infra/demo-data infra/demo-data
COPY infra/shared infra/shared
COPY infra/start infra/start
# Another Node and the binaries of uWebSockets.js for other platforms are removed. The sources of the console are removed as well, so that
# the start uses the built console.
RUN node infra/supply-chain/pnpm.mjs install --prod --frozen-lockfile --config.node-version="$(node -p process.versions.node)" --filter "@keyward/infra..." --filter "@keyward/validator..." --filter "@keyward/management..." --filter "@keyward/cli..." \
 && node infra/supply-chain/verify.ts \
 && rm -rf node_modules/node-* node_modules/.bin node_modules/.pnpm/node-* packages/console/src \
 && keep="uws_linux_$(node -p process.arch)_$(node -p process.versions.modules).node" \
 && find node_modules/.pnpm -name 'uws_*.node' ! -name "$keep" -delete \
 && node -e "import('/keyward/packages/embedded-postgres/src/binaries.ts').then((module) => module.findBinaries(null))"

FROM ${NODE_STAGE}
ENV NODE_ENV=production KEYWARD_GATEWAY_HOST=0.0.0.0 PATH=/keyward/packages/cli/bin:$PATH
COPY --from=workspace /keyward /keyward
COPY --from=console /keyward/packages/console/dist /keyward/packages/console/dist
RUN install -d -o node -g node -m 700 /data
USER node
WORKDIR /data
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=2s --start-period=60s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8000/openapi.json').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "/keyward/infra/start/main.ts"]
