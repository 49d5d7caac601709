/** The environment variables of the management service. */
import { createOriginResolver, EDGE_PRESETS, parseTrustedProxies } from '@keyward/address'
import { choice, headerName, host, integer, logLevel, origins, port, postgresUrl, variable } from '@keyward/process'
import { z } from 'zod'

import { bearerSecret } from './http/authentication.ts'
import { parseMasterKey } from './keyring/keyring.ts'

/** Accepts only a token that a client can send in an `Authorization` header. */
const operatorToken = () =>
  variable('16 to 512 printable ASCII characters without spaces', (value) =>
    value.length >= 16 && bearerSecret(`Bearer ${value}`) === value ? value : undefined,
  )
const masterKey = () => variable('32 random bytes as 64 hexadecimal digits or as base64', parseMasterKey)

export const configSchema = z.object({
  DATABASE_URL: postgresUrl(),
  MANAGEMENT_HOST: host().default('127.0.0.1'),
  MANAGEMENT_PORT: port().default(8081),
  MANAGEMENT_ADMIN_PORT: port().default(9081),
  MANAGEMENT_RATE_LIMIT: integer(1, 2_000_000_000).default(1_000),
  OPERATOR_TOKEN: operatorToken(),
  MASTER_KEY: masterKey(),
  MASTER_KEY_PREVIOUS: masterKey().optional(),
  TRUSTED_PROXIES: variable(
    'addresses and CIDR ranges separated by commas, or "all"',
    (value) => parseTrustedProxies(value) ?? undefined,
  ).default([]),
  CLIENT_IP_HEADER: headerName().optional(),
  COUNTRY_HEADER: headerName().optional(),
  EDGE: choice(EDGE_PRESETS).optional(),
  CORS_ORIGINS: origins().default([]),
  ACTIVITY_RETENTION_DAYS: integer(1, 36_500).default(90),
  ANALYTICS_RETENTION_DAYS: integer(1, 36_500).default(400),
  LOG_LEVEL: logLevel().default('info'),
})

export type Config = z.output<typeof configSchema>

export function resolverOf(config: Config) {
  return createOriginResolver({
    trustedProxies: config.TRUSTED_PROXIES,
    clientIpHeader: config.CLIENT_IP_HEADER ?? null,
    countryHeader: config.COUNTRY_HEADER ?? null,
    edge: config.EDGE ?? null,
  })
}
