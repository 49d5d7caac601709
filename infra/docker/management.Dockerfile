# The management service: the part of the workspace that it needs, without development packages. Build at the root:
#   docker build -f infra/docker/management.Dockerfile -t keyward-management .
# Pin the base image to a digest of your own choosing. Run it with a read-only file system: it writes nothing to disk.

FROM node:22-bookworm-slim AS workspace
WORKDIR /keyward
COPY package.json pnpm-lock.yaml pnpm-workspace.yaml ./
COPY packages packages
COPY services/management services/management
# Optional packages are another Node.
RUN npx --yes pnpm@12.21.0 install --prod --frozen-lockfile --no-optional --filter "@keyward/management..."

FROM node:22-bookworm-slim
WORKDIR /keyward
ENV NODE_ENV=production MANAGEMENT_HOST=0.0.0.0
COPY --from=workspace /keyward /keyward
USER node
EXPOSE 8081 9081
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=2s --start-period=20s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:9081/livez').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "services/management/src/main.ts"]
