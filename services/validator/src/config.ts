import { isIPv6 } from 'node:net'
import { availableParallelism, hostname } from 'node:os'
import { isAbsolute } from 'node:path'

import { type OriginResolverOptions, EDGE_PRESETS, parseTrustedProxies } from '@keyward/address'
import {
  choice,
  durationMs,
  headerName,
  host,
  httpOrigin,
  integer,
  logLevel,
  type LogLevel,
  origins,
  port,
  postgresUrl,
  text,
  variable,
} from '@keyward/runtime'
import { z } from 'zod'

export interface ValidatorConfig {
  databaseUrl: string
  host: string
  port: number
  /** The path of a Unix socket for a balancer on this host, or null for none. */
  socketPath: string | null
  adminHost: string
  adminPort: number
  /** The address at which management reaches the admin port. Null selects the address that the function `adminUrl` derives. */
  adminUrl: string | null
  workers: number
  corsOrigins: readonly string[]
  resolver: OriginResolverOptions
  /** The validator reports not ready, but still decides checks, when its index has not been current for longer than this time. */
  staleAfterMs: number
  /** The validator responds to checks with 503 when its index has not been current for longer than this time. */
  staleLimitMs: number
  logLevel: LogLevel
  /** The index file, or null to write none. */
  indexFile: { path: string; intervalMs: number } | null
  /** The time for which a stopping validator still accepts connections, so that balancers can detect that it is not ready. */
  drainMs: number
  /** The interval at which recorded usage is written. */
  usageFlushMs: number
}

const trustedProxies = (): z.ZodType<OriginResolverOptions['trustedProxies'], string> =>
  variable('addresses and CIDR ranges separated by commas, or all', (value) => parseTrustedProxies(value) ?? undefined)

/** The maximum length of the path of a Unix socket on all systems. */
const MAX_SOCKET_PATH = 103

/** The schema of each environment variable, by name. */
export const variables = z.object({
  DATABASE_URL: postgresUrl().optional(),
  VALIDATOR_DATABASE_URL: postgresUrl().optional(),
  VALIDATOR_HOST: host().default('127.0.0.1'),
  VALIDATOR_PORT: port().default(8080),
  VALIDATOR_SOCKET: variable(`an absolute path of at most ${MAX_SOCKET_PATH} bytes`, (value) =>
    isAbsolute(value) && Buffer.byteLength(value) <= MAX_SOCKET_PATH ? value : undefined,
  ).optional(),
  VALIDATOR_WORKERS: integer(1, 256).default(availableParallelism()),
  VALIDATOR_ADMIN_PORT: port().default(9080),
  VALIDATOR_ADMIN_HOST: host().default('127.0.0.1'),
  VALIDATOR_ADMIN_URL: httpOrigin().optional(),
  TRUSTED_PROXIES: trustedProxies().default([]),
  CLIENT_IP_HEADER: headerName().optional(),
  COUNTRY_HEADER: headerName().optional(),
  EDGE: choice(EDGE_PRESETS).optional(),
  CORS_ORIGINS: origins(['*']).default([]),
  STALE_AFTER: durationMs(100).default(5_000),
  STALE_LIMIT: durationMs(100).default(900_000),
  INDEX_FILE: text('the path of a file').optional(),
  INDEX_FILE_INTERVAL: durationMs(1_000).default(300_000),
  LOG_LEVEL: logLevel().default('info'),
})

export const environment = variables.transform((env, context): ValidatorConfig => {
  const databaseUrl = env.VALIDATOR_DATABASE_URL ?? env.DATABASE_URL
  if (databaseUrl === undefined) {
    context.addIssue({
      code: 'custom',
      path: ['VALIDATOR_DATABASE_URL'],
      message: 'an address such as postgres://user:password@host:5432/database',
    })
    return z.NEVER
  }
  if (env.STALE_LIMIT <= env.STALE_AFTER) {
    context.addIssue({ code: 'custom', path: ['STALE_LIMIT'], message: 'a duration longer than KEYWARD_STALE_AFTER' })
    return z.NEVER
  }
  return {
    databaseUrl,
    host: env.VALIDATOR_HOST,
    port: env.VALIDATOR_PORT,
    socketPath: env.VALIDATOR_SOCKET ?? null,
    adminHost: env.VALIDATOR_ADMIN_HOST,
    adminPort: env.VALIDATOR_ADMIN_PORT,
    adminUrl: env.VALIDATOR_ADMIN_URL ?? null,
    workers: env.VALIDATOR_WORKERS,
    corsOrigins: env.CORS_ORIGINS,
    resolver: {
      trustedProxies: env.TRUSTED_PROXIES,
      clientIpHeader: env.CLIENT_IP_HEADER ?? null,
      countryHeader: env.COUNTRY_HEADER ?? null,
      edge: env.EDGE ?? null,
      hasUnixSocket: env.VALIDATOR_SOCKET !== undefined,
    },
    staleAfterMs: env.STALE_AFTER,
    staleLimitMs: env.STALE_LIMIT,
    logLevel: env.LOG_LEVEL,
    indexFile: env.INDEX_FILE === undefined ? null : { path: env.INDEX_FILE, intervalMs: env.INDEX_FILE_INTERVAL },
    drainMs: 1_000,
    usageFlushMs: 1_000,
  }
})

/**
 * Returns the address at which management reaches the admin port. If the admin server listens on all addresses, the result
 * contains the host name, which other containers can resolve.
 */
export function adminUrl(config: Pick<ValidatorConfig, 'adminHost' | 'adminUrl'>, listeningPort: number): string {
  if (config.adminUrl !== null) return config.adminUrl
  const { adminHost } = config
  if (adminHost === '0.0.0.0' || adminHost === '::') return `http://${hostname()}:${listeningPort}`
  return `http://${isIPv6(adminHost) ? `[${adminHost}]` : adminHost}:${listeningPort}`
}
