import { describe, expect, test } from 'vitest'

import {
  COUNTRY_CODES,
  type RequestOrigin,
  createOriginResolver,
  noAddress,
  packCountry,
  parseAddress,
  parseCountryCode,
  parseTrustedProxies,
} from '../src/index.ts'
import { type ClientCase, CLIENTS } from './data/clients.ts'

const resolverOf = (given: ClientCase): ReturnType<typeof createOriginResolver> =>
  createOriginResolver({
    trustedProxies: parseTrustedProxies(given.trust ?? '')!,
    clientIpHeader: given.clientIpHeader ?? null,
    countryHeader: given.countryHeader ?? null,
    edge: given.edge ?? null,
  })

describe('createOriginResolver', () => {
  test.each(CLIENTS)('$name', (given) => {
    const resolver = resolverOf(given)
    const header = (name: string): string => given.headers?.[name] ?? ''
    expect(resolver.resolveText(given.peer, header)).toEqual({ ip: given.ip, country: given.country ?? null })

    const asked: string[] = []
    const out: RequestOrigin = { ...noAddress(), country: 99 }
    resolver.resolve(
      {
        header: (name) => (asked.push(name), header(name)),
        peer: (address) => void parseAddress(given.peer ?? '', address),
      },
      out,
    )
    const expected = noAddress()
    parseAddress(given.ip ?? '', expected)
    expect(out).toEqual({ ...expected, country: given.country ? packCountry(given.country) : 0 })
    expect(resolver.headers).toEqual(expect.arrayContaining(asked))
  })

  test('never reads the peer address when every peer is trusted and a client header is set', () => {
    const resolver = createOriginResolver({ trustedProxies: 'all', edge: 'cloudflare' })
    const peer = (): never => {
      throw new Error('looked up')
    }
    const out: RequestOrigin = { ...noAddress(), country: 0 }
    resolver.resolve({ header: (name) => (name === 'cf-connecting-ip' ? '1.2.3.4' : ''), peer }, out)
    expect(out.a0).toBe(0x01020304)
  })

  test('parses trusted proxies: a list of addresses and ranges, or the word all', () => {
    expect(parseTrustedProxies('')).toEqual([])
    expect(parseTrustedProxies(' all ')).toBe('all')
    expect(parseTrustedProxies('10.0.0.0/8, ::1')).toHaveLength(2)
    expect(parseTrustedProxies('10.0.0.0/8, nonsense')).toBeNull()
    expect(parseTrustedProxies('all, 10.0.0.0/8')).toBeNull()
  })
})

describe('country codes', () => {
  test('COUNTRY_CODES contains the 249 assigned codes and XK', () => {
    expect(COUNTRY_CODES.size).toBe(250)
    expect(parseCountryCode('de')).toBe('DE')
    expect(parseCountryCode('xk')).toBe('XK')
    for (const bad of ['', 'D', 'DEU', 'XX', 'ZZ', 'T1', 'EU', 'UK', 'AN', 'SU', 'ß', 'dE ', 'ıT'])
      expect(parseCountryCode(bad)).toBeNull()
  })
})
