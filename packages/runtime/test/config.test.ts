import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import {
  choice,
  ConfigError,
  durationMs,
  host,
  integer,
  list,
  logLevel,
  origins,
  port,
  postgresUrl,
  oldNames,
  readConfig,
  secret,
} from '../src/index.ts'

const schema = z
  .object({
    VALIDATOR_HOST: host().default('127.0.0.1'),
    VALIDATOR_PORT: port().default(8080),
    STALE_AFTER: durationMs(100).default(5_000),
    TRUSTED_PROXIES: list().default([]),
    LOG_LEVEL: logLevel().default('info'),
    EDGE: choice(['cloudflare', 'fastly']).optional(),
    MASTER_KEY: secret(32).optional(),
    MASTER_KEY_PREVIOUS: secret(32).optional(),
    DATABASE_URL: postgresUrl(),
  })
  .transform((env) => ({ port: env.VALIDATOR_PORT, ...env }))

const base = { DATABASE_URL: 'postgres://user:hunter2@127.0.0.1:5432/keyward' }

function messageOf(env: Record<string, string | undefined>): string {
  try {
    readConfig(schema, { ...base, ...env })
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
  return ''
}

describe('readConfig', () => {
  test('applies defaults to variables that are unset or empty, and ignores unknown ones', () => {
    const config = readConfig(schema, { ...base, VALIDATOR_PORT: '', HOME: '/nowhere', EDGE: undefined })
    expect(config).toMatchObject({ port: 8080, STALE_AFTER: 5_000, TRUSTED_PROXIES: [], LOG_LEVEL: 'info' })
    expect(config.EDGE).toBeUndefined()
  })

  test('reads the variables that are set', () => {
    const env = {
      ...base,
      VALIDATOR_PORT: '0',
      STALE_AFTER: '1.5s',
      TRUSTED_PROXIES: '10.0.0.0/8, ::1',
      EDGE: 'fastly',
    }
    expect(readConfig(schema, env)).toMatchObject({
      port: 0,
      STALE_AFTER: 1_500,
      TRUSTED_PROXIES: ['10.0.0.0/8', '::1'],
      EDGE: 'fastly',
    })
  })

  test('accepts several hosts of Postgres, and rejects addresses that lead to a standby', () => {
    const several = 'postgres://u:p%40,s@a:1,[::1]:2,c/db?target_session_attrs=read-write'
    expect(readConfig(schema, { ...base, DATABASE_URL: several }).DATABASE_URL).toBe(several)
    for (const wrong of ['a:1,,b', 'a:1,', ',', 'a:x,b', 'a,b:99999999'])
      expect(messageOf({ DATABASE_URL: `postgres://u:p@${wrong}/db` }), wrong).toMatch(/several hosts/)
    expect(messageOf({ DATABASE_URL: 'postgres://a,b/db?target_session_attrs=standby' })).toMatch(
      /target_session_attrs may be read-write or primary/,
    )
  })

  test('accepts an address or localhost as a host, and rejects other names without a lookup', () => {
    expect(readConfig(schema, { ...base, VALIDATOR_HOST: '::' }).VALIDATOR_HOST).toBe('::')
    expect(messageOf({ VALIDATOR_HOST: '999.1.1.1' })).toBe(
      'VALIDATOR_HOST must be an IP address of this machine, or localhost; got "999.1.1.1"',
    )
  })

  test('names the invalid variable, its value and the allowed values in one line', () => {
    expect(messageOf({ VALIDATOR_PORT: '80a' })).toBe('VALIDATOR_PORT must be a port from 0 to 65535; got "80a"')
    expect(messageOf({ EDGE: 'akamia' })).toBe('EDGE must be one of cloudflare, fastly; got "akamia"')
    expect(messageOf({ DATABASE_URL: undefined })).toMatch(
      /^KEYWARD_DATABASE_URL must be an address such as .*; it is not set$/,
    )
    expect(messageOf({ STALE_AFTER: '5', LOG_LEVEL: 'loud' }).split('\n')).toHaveLength(2)
  })

  test('reads the names with prefix, and names a variable as it was set', () => {
    const env = { KEYWARD_DATABASE_URL: base.DATABASE_URL, KEYWARD_VALIDATOR_PORT: '81', EDGE: 'fastly' }
    expect(readConfig(schema, env)).toMatchObject({ port: 81, EDGE: 'fastly', DATABASE_URL: base.DATABASE_URL })
    expect(messageOf({ KEYWARD_EDGE: 'x' })).toBe('KEYWARD_EDGE must be one of cloudflare, fastly; got "x"')
    expect(messageOf({ KEYWARD_EDGE: '', EDGE: 'x' })).toBe('EDGE must be one of cloudflare, fastly; got "x"')
  })

  test('rejects different values under the two names without printing them, and accepts equal values', () => {
    expect(messageOf({ KEYWARD_MASTER_KEY: 'a'.repeat(32), MASTER_KEY: 'b'.repeat(32) })).toBe(
      'KEYWARD_MASTER_KEY and its old name MASTER_KEY have different values; remove MASTER_KEY',
    )
    const both = { ...base, KEYWARD_VALIDATOR_PORT: '81', VALIDATOR_PORT: '81' }
    expect([readConfig(schema, both).port, oldNames(schema, both)]).toEqual([
      81,
      { DATABASE_URL: 'KEYWARD_DATABASE_URL' },
    ])
  })

  test('never prints a value that may be a secret', () => {
    expect(messageOf({ MASTER_KEY: 'too-short' })).toBe(
      'MASTER_KEY must be at least 32 characters without spaces; the value received is not shown',
    )
    expect(messageOf({ DATABASE_URL: 'mysql://root:hunter2@db/keyward' })).not.toContain('hunter2')
    expect(messageOf({ MASTER_KEY_PREVIOUS: 'too-short' })).toBe(
      'MASTER_KEY_PREVIOUS must be at least 32 characters without spaces; the value received is not shown',
    )
  })

  test('prints the value of a variable whose name only resembles that of a secret', () => {
    expect(messageOf({ TRUSTED_PROXIES: 'a,,b' })).toContain('"a,,b"')
  })

  test('prints at most the first 100 characters of a value', () => {
    expect(messageOf({ LOG_LEVEL: 'x'.repeat(10_000) }).length).toBeLessThan(300)
  })
})

test('reads durations as whole milliseconds and requires a unit', () => {
  const read = (value: string) => durationMs().safeParse(value)
  const good = {
    '0ms': 0,
    '250ms': 250,
    '5s': 5_000,
    '0.25s': 250,
    '15min': 900_000,
    '2h': 7_200_000,
    '30d': 2_592_000_000,
  }
  for (const [value, expected] of Object.entries(good)) expect(read(value).data, value).toBe(expected)
  for (const value of ['5', '5 s', '-5s', '5m', '5S', '1e3s', 's', '5s5s', '9999999999s']) {
    expect(read(value).success, value).toBe(false)
  }
})

test('accepts origins as browsers send them', () => {
  const read = (value: string) => origins().safeParse(value).success
  const good = ['https://a.example', 'http://localhost:3000,https://[2001:db8::1]', 'capacitor://localhost', 'null']
  expect(good.filter((value) => !read(value))).toEqual([])
  const bad = ['*', 'nonsense here', 'a.example', 'https://a.example/', 'https://A.example', 'https://a.example:443']
  expect(bad.filter(read)).toEqual([])
  expect(origins(['*']).parse('*')).toEqual(['*'])
})

test('accepts integers in plain digits within the bounds', () => {
  const read = (value: string) => integer(1, 64).safeParse(value).success
  expect([read('1'), read('64')]).toEqual([true, true])
  for (const value of ['0', '65', '-1', '1.5', '0x10', '1e1', ' 1', '']) expect(read(value), value).toBe(false)
})
