# The migration and the command line. Build the image at the root:
#   docker build -f infra/docker/migrate.Dockerfile -t keyward-migrate .
# Pin the base image to a digest: --build-arg NODE_IMAGE=node:24-trixie-slim@sha256:…
# The image runs with a read-only file system.

ARG NODE_IMAGE=node:24-trixie-slim
FROM ${NODE_IMAGE} AS workspace
WORKDIR /keyward
COPY package.json pnpm-lock.yaml pnpm-workspace.yaml ./
COPY infra/supply-chain infra/supply-chain
COPY packages packages
COPY infra/package.json infra/
COPY infra/migrate infra/migrate
COPY infra/shared infra/shared
COPY infra/smoke-test infra/smoke-test
# The optional packages, which contain an embedded Postgres and another Node, are left out.
RUN node infra/supply-chain/pnpm.mjs install --prod --frozen-lockfile --no-optional --filter "@keyward/infra..." --filter "@keyward/cli..." \
 && node infra/supply-chain/verify.ts

FROM ${NODE_IMAGE}
WORKDIR /keyward
ENV NODE_ENV=production
COPY --from=workspace /keyward /keyward
USER node
CMD ["node", "infra/migrate/main.ts"]
