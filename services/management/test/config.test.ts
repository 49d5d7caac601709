/** Tests the configuration. Every invalid value causes a one-line error that names the variable. */

import { ConfigError, readConfig } from '@keyward/runtime'
import { expect, test } from 'vitest'

import { environment, type ManagementConfig } from '../src/config.ts'
import { masterKey, operatorToken } from './support/harness.ts'

const required = {
  DATABASE_URL: 'postgres://localhost/keyward',
  OPERATOR_TOKEN: operatorToken,
  MASTER_KEY: masterKey,
}
const read = (env: Record<string, string>): ManagementConfig => readConfig(environment, { ...required, ...env })

test('reads header names in lower case', () => {
  const config = read({ CLIENT_IP_HEADER: 'X-Real-IP', COUNTRY_HEADER: 'cf-ipcountry' })
  expect(config.resolver).toMatchObject({ clientIpHeader: 'x-real-ip', countryHeader: 'cf-ipcountry' })
})

test('accepts an operator token of 512 characters', () => {
  expect(read({ OPERATOR_TOKEN: '~'.repeat(512) }).operatorTokens[0]).toHaveLength(512)
})

test.each([
  ['CLIENT_IP_HEADER', 'x-real-ip ', 'the name of a header'],
  ['CLIENT_IP_HEADER', 'x real ip', 'the name of a header'],
  ['COUNTRY_HEADER', 'x-country:', 'the name of a header'],
  ['OPERATOR_TOKEN', 'x'.repeat(31), '32 to 512 printable ASCII characters'],
  ['OPERATOR_TOKEN', 'x'.repeat(513), '32 to 512 printable ASCII characters'],
  ['OPERATOR_TOKEN', 'é'.repeat(40), '32 to 512 printable ASCII characters'],
  ['OPERATOR_TOKEN_PREVIOUS', 'short', '32 to 512 printable ASCII characters'],
  ['OIDC_ISSUER', 'http://login.example.com', 'the https address of an OpenID Connect issuer'],
  ['OIDC_ISSUER', 'https://login.example.com/?a=b', 'the https address of an OpenID Connect issuer'],
  ['OIDC_ISSUER', 'login.example.com', 'the https address of an OpenID Connect issuer'],
  ['OIDC_EMAIL_DOMAINS', 'example.com,@example.org', 'domains such as example.com separated by commas'],
  ['OIDC_LABEL', 'x'.repeat(61), '1 to 60 characters'],
  ['CORS_ORIGINS', '*', 'web origins such as https://example.com separated by commas'],
  ['CORS_ORIGINS', 'https://a.example/', 'web origins such as https://example.com separated by commas'],
])('rejects %s = %j with one line that names the variable', (name, value, takes) => {
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

test('requires the issuer, the client id and the client secret of OpenID Connect together', () => {
  const all = { OIDC_ISSUER: 'https://login.example.com', OIDC_CLIENT_ID: 'keyward', OIDC_CLIENT_SECRET: 'a secret' }
  expect(read(all).identityProvider).toMatchObject({ clientId: 'keyward', label: 'Single sign-on', emailDomains: [] })
  expect(read({}).identityProvider).toBeNull()
  expect(() => read({ ...all, OIDC_CLIENT_SECRET: '' })).toThrow(
    'KEYWARD_OIDC_CLIENT_SECRET must be set together with KEYWARD_OIDC_ISSUER, KEYWARD_OIDC_CLIENT_ID and KEYWARD_OIDC_CLIENT_SECRET; it is not set',
  )
})
