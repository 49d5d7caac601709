import ipaddr from 'ipaddr.js'
import { describe, expect, test } from 'vitest'

import { contains, formatNetwork, noAddress, parseAddress, parseNetwork, readAddressBytes } from '../src/index.ts'
import { SPELLINGS as data } from './data/networks.ts'

function generator(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state
  }
}

describe('parseNetwork', () => {
  test('the test data contain at least 60 spellings', () => {
    expect(Object.keys(data.valid).length + data.invalid.length).toBeGreaterThanOrEqual(60)
  })

  test.each(Object.entries(data.valid))('parses %s as %s', (text, canonical) => {
    const network = parseNetwork(text)
    expect(network && formatNetwork(network)).toBe(canonical)
    const again = parseNetwork(canonical)
    expect(again).toEqual(network)
  })

  test.each(data.invalid)('rejects the spelling %j', (text) => {
    expect(parseNetwork(text)).toBeNull()
  })

  test('a network contains only addresses of its family that begin with its prefix', () => {
    const address = noAddress()
    const covers = (network: string, text: string): boolean => {
      const parsed = parseNetwork(network)
      return parsed !== null && parseAddress(text, address) && contains(parsed, address)
    }
    expect(covers('10.0.0.0/8', '10.255.0.1')).toBe(true)
    expect(covers('10.0.0.0/8', '11.0.0.0')).toBe(false)
    expect(covers('0.0.0.0/0', '255.255.255.255')).toBe(true)
    expect(covers('::/0', '10.0.0.1')).toBe(false)
    expect(covers('0.0.0.0/0', '::ffff:9.9.9.9')).toBe(true)
    expect(covers('2001:db8::/33', '2001:db8:7fff::')).toBe(true)
    expect(covers('2001:db8::/33', '2001:db8:8000::')).toBe(false)
    expect(covers('2001:db8::1', '2001:db8::1')).toBe(true)
  })

  test('formats random addresses in the same way as ipaddr.js', () => {
    const next = generator(20_261)
    for (let round = 0; round < 20_000; round++) {
      const six = next() % 2 === 0
      // About two of three bytes are zero, so that most IPv6 addresses are compressed.
      const bytes = Array.from({ length: six ? 16 : 4 }, () => (next() % 3 === 0 ? next() >>> 24 : 0))
      if (six && bytes.slice(0, 10).every((byte) => byte === 0)) continue // may embed an IPv4 address
      const reference = ipaddr.fromByteArray(bytes)
      const prefix = next() % (six ? 129 : 33)
      const network = parseNetwork(`${reference.toNormalizedString()}/${prefix}`)
      const masked = ipaddr.fromByteArray(
        bytes.map((byte, i) => byte & (0xff00 >> Math.min(8, Math.max(0, prefix - 8 * i)))),
      )
      const expected = prefix === (six ? 128 : 32) ? masked.toString() : `${masked.toString()}/${prefix}`
      expect(network && formatNetwork(network)).toBe(expected)

      const fromText = noAddress()
      const fromBytes = noAddress()
      expect(parseAddress(reference.toString(), fromText)).toBe(true)
      expect(readAddressBytes(Uint8Array.from(bytes), fromBytes)).toBe(true)
      expect(fromText).toEqual(fromBytes)
      expect(contains(network!, fromText)).toBe(true)
    }
  })

  test('reads the IPv4-mapped bytes of a dual-stack socket as IPv4', () => {
    const address = noAddress()
    readAddressBytes(Uint8Array.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 1, 2, 3, 4]), address)
    expect(address).toEqual({ addressFamily: 4, a0: 0x01020304, a1: 0, a2: 0, a3: 0 })
    expect(readAddressBytes(new Uint8Array(0), address)).toBe(false)
    expect(address.addressFamily).toBe(0)
  })
})
