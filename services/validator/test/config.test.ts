import { ConfigError, readConfig } from '@keyward/runtime'
import { expect, test } from 'vitest'

import { environment, type ValidatorConfig } from '../src/config.ts'

const read = (env: Record<string, string>): ValidatorConfig =>
  readConfig(environment, { DATABASE_URL: 'postgres://localhost/keyward', ...env })

test('applies the documented defaults', () => {
  expect(read({})).toMatchObject({
    host: '127.0.0.1',
    port: 8080,
    adminPort: 9080,
    corsOrigins: [],
    resolver: { trustedProxies: [], clientIpHeader: null, countryHeader: null, edge: null },
    staleAfterMs: 5_000,
    staleLimitMs: 900_000,
    indexFile: null,
    logLevel: 'info',
  })
  expect(read({ VALIDATOR_HOST: '0.0.0.0' })).toMatchObject({ host: '0.0.0.0', adminHost: '127.0.0.1' })
  expect(read({ VALIDATOR_DATABASE_URL: 'postgres://v@localhost/keyward' }).databaseUrl).toContain('v@')
})

test('reads proxies, edge preset, origins and durations from variables', () => {
  const config = read({
    TRUSTED_PROXIES: '10.0.0.0/8, ::1',
    COUNTRY_HEADER: 'CF-IPCountry',
    EDGE: 'akamai',
    CORS_ORIGINS: 'https://a.example.com, https://b.example.com',
    STALE_LIMIT: '2min',
  })
  expect(config.resolver).toMatchObject({ countryHeader: 'cf-ipcountry', edge: 'akamai' })
  expect(config.resolver.trustedProxies).toHaveLength(2)
  expect(config.corsOrigins).toEqual(['https://a.example.com', 'https://b.example.com'])
  expect(config.staleLimitMs).toBe(120_000)
  expect(read({ TRUSTED_PROXIES: 'all' }).resolver.trustedProxies).toBe('all')
  expect(read({ CORS_ORIGINS: '*' }).corsOrigins).toEqual(['*'])
})

test.each([
  ['VALIDATOR_PORT', '99999', 'a port from 0 to 65535'],
  ['VALIDATOR_WORKERS', '0', 'a whole number from 1 to 256'],
  ['TRUSTED_PROXIES', '10.0.0.0/8,nonsense', 'addresses and CIDR ranges separated by commas, or all'],
  ['CLIENT_IP_HEADER', 'x real ip', 'the name of a header'],
  ['CORS_ORIGINS', 'nonsense here', 'web origins such as https://example.com separated by commas, or *'],
  ['CORS_ORIGINS', 'https://a.example/', 'web origins such as https://example.com separated by commas, or *'],
  ['EDGE', 'cloudflar', 'one of cloudflare, cloudfront, fastly, vercel, google, akamai'],
  ['STALE_AFTER', 'soon', 'a duration'],
  ['STALE_LIMIT', '1s', 'a duration longer than KEYWARD_STALE_AFTER'],
  ['VALIDATOR_HOST', '999.1.1.1', 'an IP address of this machine'],
  ['DATABASE_URL', 'mysql://x', 'postgres://'],
])('rejects an invalid %s with a one-line message that names the variable', (name, value, takes) => {
  let message = ''
  try {
    read({ [name]: value })
  } catch (error) {
    message = error instanceof ConfigError ? error.message : ''
  }
  expect(message.split('\n')).toHaveLength(1)
  expect(message).toContain(name)
  expect(message).toContain(takes)
})
