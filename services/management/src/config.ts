import { EDGE_PRESETS, type OriginResolverOptions, parseTrustedProxies } from '@keyward/address'
import {
  choice,
  headerName,
  host,
  httpOrigins,
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

import { bearerSecret } from './admission/authentication.ts'
import type { RateLimits } from './admission/rate-limit.ts'
import { isLoopback } from './http/site.ts'
import { parseMasterKey } from './keyring/keyring.ts'
import { parseAddress, parseOrigin, parseServer, type MailOptions } from './mails/smtp-options.ts'
import { DEFAULT_PORTS, parseNetworks, parsePorts, type WebhookNetwork } from './outbound/network.ts'
import type { IdentityProviderOptions } from './resources/openid/identity-provider.ts'
import type { RetentionDays } from './retention/retention.ts'

/** Accepts only a token that a client can send in an `Authorization` header. */
const operatorToken = () =>
  variable('32 to 512 printable ASCII characters without spaces', (value) =>
    value.length >= 32 && bearerSecret(`Bearer ${value}`) === value ? value : undefined,
  )
const masterKey = () => variable('32 random bytes as 64 hexadecimal digits or as base64', parseMasterKey)

const issuer = () =>
  variable('the https address of an OpenID Connect issuer (http only at a loopback address)', (value) => {
    const url = URL.parse(value)
    if (url === null || url.username !== '' || url.search !== '' || url.hash !== '') return undefined
    return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname)) ? url : undefined
  })
const domains = () =>
  variable('domains such as example.com separated by commas', (value) => {
    const parts = value.split(',').map((part) => part.trim().toLowerCase())
    return parts.every((part) => /^[^\s@,]+\.[^\s@,.]+$/.test(part)) ? parts : undefined
  })
const label = () =>
  variable('1 to 60 characters', (value) =>
    /^[^\p{C}]{1,60}$/u.test(value) && value.trim() !== '' ? value : undefined,
  )

/** The schema of each environment variable, by name. */
export const variables = z.object({
  DATABASE_URL: postgresUrl(),
  DATABASE_PREPARED_STATEMENTS: choice(['true', 'false']).default('true'),
  MANAGEMENT_HOST: host().default('127.0.0.1'),
  MANAGEMENT_PORT: port().default(8081),
  MANAGEMENT_ADMIN_HOST: host().optional(),
  MANAGEMENT_ADMIN_PORT: port().default(9081),
  MANAGEMENT_RATE_LIMIT: integer(1, 2_000_000_000).default(1_000),
  MANAGEMENT_ORGANIZATION_RATE_LIMIT: integer(1, 2_000_000_000).optional(),
  MANAGEMENT_API_KEY_RATE_LIMIT: integer(1, 2_000_000_000).default(10_000),
  OPERATOR_TOKEN: operatorToken(),
  OPERATOR_TOKEN_PREVIOUS: operatorToken().optional(),
  MASTER_KEY: masterKey(),
  MASTER_KEY_PREVIOUS: masterKey().optional(),
  TRUSTED_PROXIES: variable(
    'addresses and CIDR ranges separated by commas, or "all"',
    (value) => parseTrustedProxies(value) ?? undefined,
  ).default([]),
  CLIENT_IP_HEADER: headerName().optional(),
  COUNTRY_HEADER: headerName().optional(),
  EDGE: choice(EDGE_PRESETS).optional(),
  VALIDATOR_ADMIN_URLS: httpOrigins().default([]),
  OIDC_ISSUER: issuer().optional(),
  OIDC_CLIENT_ID: text('the id that the identity provider has given to this service').optional(),
  OIDC_CLIENT_SECRET: text('the secret that the identity provider has given to this service').optional(),
  OIDC_EMAIL_DOMAINS: domains().default([]),
  OIDC_LABEL: label().default('Single sign-on'),
  CORS_ORIGINS: origins().default([]),
  WEBHOOK_ALLOWED_NETWORKS: variable('addresses and CIDR ranges separated by commas', (value) =>
    parseNetworks(value.split(',').map((part) => part.trim())),
  ).default([]),
  WEBHOOK_ALLOWED_PORTS: variable('ports separated by commas, or "all"', parsePorts).default(DEFAULT_PORTS),
  WEBHOOK_ALLOW_HTTP: choice(['true', 'false']).default('false'),
  SMTP_URL: variable('an address such as smtps://user:password@mail.example.com', parseServer).optional(),
  SMTP_ALLOW_PLAIN: choice(['true', 'false']).default('false'),
  MAIL_FROM: variable('an e-mail address', parseAddress).optional(),
  MAIL_PORTAL_URL: variable('an https address such as https://licenses.example.com', parseOrigin).optional(),
  MAIL_DAILY_LIMIT: integer(1, 1_000_000).default(1_000),
  ACTIVITY_RETENTION_DAYS: integer(1, 36_500).default(90),
  ANALYTICS_RETENTION_DAYS: integer(1, 36_500).default(400),
  EXPIRED_RULE_RETENTION_DAYS: integer(1, 36_500).default(30),
  REVOKED_CREDENTIAL_RETENTION_DAYS: integer(1, 36_500).default(30),
  ALERT_RETENTION_DAYS: integer(1, 36_500).default(90),
  AUDIT_RETENTION_DAYS: integer(1, 36_500).default(400),
  MERGED_CUSTOMER_RETENTION_DAYS: integer(1, 36_500).default(400),
  LOG_LEVEL: logLevel().default('info'),
})

export interface ManagementConfig {
  databaseUrl: string
  preparesStatements: boolean
  host: string
  port: number
  adminHost: string
  adminPort: number
  rateLimits: RateLimits
  /** The current token, and the previous one while it is being replaced. */
  operatorTokens: readonly string[]
  masterKey: Uint8Array
  /** The previous master key, or null. It decrypts stored signing keys and secrets until all are encrypted with `masterKey`. */
  previousMasterKey: Uint8Array | null
  resolver: OriginResolverOptions
  /** The URLs of the validators' admin ports. When the list is empty, management uses the addresses that validators publish. */
  validatorAdminUrls: readonly string[]
  /** The configured provider of OpenID Connect, or null. */
  identityProvider: IdentityProviderOptions | null
  corsOrigins: readonly string[]
  webhookNetwork: WebhookNetwork
  /** The mail server of the operator, or null. */
  mail: MailOptions | null
  /** The time for which a stopping service still responds while it reports not ready. */
  drainMs: number
  /** Beyond this number, new connections are closed, so that descriptors remain for Postgres and webhooks. */
  maxConnections: number
  activityRetentionDays: number
  analyticsRetentionDays: number
  retentionDays: RetentionDays
  logLevel: LogLevel
}

/** Returns the provider of OpenID Connect, or null. Adds an issue when only some of the three required variables are set. */
function identityProviderOf(env: z.output<typeof variables>, context: z.RefinementCtx): IdentityProviderOptions | null {
  const { OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET } = env
  if (OIDC_ISSUER !== undefined && OIDC_CLIENT_ID !== undefined && OIDC_CLIENT_SECRET !== undefined)
    return {
      issuer: OIDC_ISSUER,
      clientId: OIDC_CLIENT_ID,
      clientSecret: OIDC_CLIENT_SECRET,
      label: env.OIDC_LABEL,
      emailDomains: env.OIDC_EMAIL_DOMAINS,
    }
  const together = { OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET }
  const missing = Object.entries(together).filter(([, value]) => value === undefined)
  if (missing.length < Object.keys(together).length)
    for (const [name] of missing)
      context.addIssue({
        code: 'custom',
        path: [name],
        message: 'set together with KEYWARD_OIDC_ISSUER, KEYWARD_OIDC_CLIENT_ID and KEYWARD_OIDC_CLIENT_SECRET',
      })
  return null
}

/** Returns the options of the mail server, or null. Adds an issue when only one of the two required variables is set. */
function mailOf(env: z.output<typeof variables>, context: z.RefinementCtx): ManagementConfig['mail'] {
  const { SMTP_URL: server, MAIL_FROM: from } = env
  if (server !== undefined && from !== undefined)
    return {
      ...server,
      from,
      allowsPlain: env.SMTP_ALLOW_PLAIN === 'true',
      perDay: env.MAIL_DAILY_LIMIT,
      portal: env.MAIL_PORTAL_URL ?? null,
    }
  if (server !== undefined || from !== undefined)
    context.addIssue({
      code: 'custom',
      path: [server === undefined ? 'SMTP_URL' : 'MAIL_FROM'],
      message: 'set together with KEYWARD_SMTP_URL and KEYWARD_MAIL_FROM',
    })
  return null
}

export const environment = variables.transform((env, context): ManagementConfig => ({
  databaseUrl: env.DATABASE_URL,
  preparesStatements: env.DATABASE_PREPARED_STATEMENTS === 'true',
  host: env.MANAGEMENT_HOST,
  port: env.MANAGEMENT_PORT,
  adminHost: env.MANAGEMENT_ADMIN_HOST ?? env.MANAGEMENT_HOST,
  adminPort: env.MANAGEMENT_ADMIN_PORT,
  rateLimits: {
    credential: env.MANAGEMENT_RATE_LIMIT,
    organization: env.MANAGEMENT_ORGANIZATION_RATE_LIMIT ?? 2 * env.MANAGEMENT_RATE_LIMIT,
    apiKey: env.MANAGEMENT_API_KEY_RATE_LIMIT,
  },
  operatorTokens: [
    env.OPERATOR_TOKEN,
    ...(env.OPERATOR_TOKEN_PREVIOUS === undefined ? [] : [env.OPERATOR_TOKEN_PREVIOUS]),
  ],
  masterKey: env.MASTER_KEY,
  previousMasterKey: env.MASTER_KEY_PREVIOUS ?? null,
  resolver: {
    trustedProxies: env.TRUSTED_PROXIES,
    clientIpHeader: env.CLIENT_IP_HEADER ?? null,
    countryHeader: env.COUNTRY_HEADER ?? null,
    edge: env.EDGE ?? null,
  },
  validatorAdminUrls: env.VALIDATOR_ADMIN_URLS,
  identityProvider: identityProviderOf(env, context),
  corsOrigins: env.CORS_ORIGINS,
  webhookNetwork: {
    allowedNetworks: env.WEBHOOK_ALLOWED_NETWORKS,
    allowedPorts: env.WEBHOOK_ALLOWED_PORTS,
    allowsHttp: env.WEBHOOK_ALLOW_HTTP === 'true',
  },
  mail: mailOf(env, context),
  // Balancers' health checks detect within this time that the service is not ready.
  drainMs: 1_000,
  maxConnections: 10_000,
  activityRetentionDays: env.ACTIVITY_RETENTION_DAYS,
  analyticsRetentionDays: env.ANALYTICS_RETENTION_DAYS,
  retentionDays: {
    expiredRules: env.EXPIRED_RULE_RETENTION_DAYS,
    revokedCredentials: env.REVOKED_CREDENTIAL_RETENTION_DAYS,
    acknowledgedAlerts: env.ALERT_RETENTION_DAYS,
    audit: env.AUDIT_RETENTION_DAYS,
    mergedCustomers: env.MERGED_CUSTOMER_RETENTION_DAYS,
  },
  logLevel: env.LOG_LEVEL,
}))
