import { createHash } from 'node:crypto'

import { describe, expect, test } from 'vitest'

import { bytesToUuid, createSecret, hashSecret, parseSecret, uuidToBytes, uuidv7 } from '../src/index.ts'

describe('uuidv7', () => {
  test('orders ids by creation, even within one millisecond and when the clock is set back', () => {
    const now = Date.now() + 1_000
    const ids = Array.from({ length: 20_000 }, (_, i) => uuidv7(i % 3 === 0 ? now - i : now))
    expect(ids.toSorted()).toEqual(ids)
    expect(new Set(ids).size).toBe(ids.length)
  })

  test('an id contains the version, the variant and the time', () => {
    const at = Date.UTC(2100, 1, 2, 3, 4, 5, 678)
    const id = uuidv7(at)
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(parseInt(id.replaceAll('-', '').slice(0, 12), 16)).toBe(at)
    expect(bytesToUuid(uuidToBytes(id))).toBe(id)
    expect(() => uuidToBytes(id.slice(1))).toThrow(TypeError)
  })
})

describe('secrets', () => {
  test.each([
    ['API_KEY', 'kwk_'],
    ['MANAGEMENT_TOKEN', 'kwm_'],
    ['ACCESS_TOKEN', 'kwp_'],
  ] as const)('a secret of the kind %s begins with %s and is accepted', (kind, start) => {
    const made = createSecret(kind)
    expect(made.secret).toMatch(new RegExp(`^${start}[0-9A-Za-z]{36}$`))
    expect(made.secret.startsWith(made.prefix)).toBe(true)
    expect(parseSecret(made.secret)).toEqual({ kind })
    expect(Buffer.from(made.hash)).toEqual(createHash('sha256').update(made.secret).digest())
    expect(hashSecret(made.secret)).toEqual(made.hash)
  })

  test('rejects a secret with one wrong character', () => {
    const { secret } = createSecret('API_KEY')
    for (let at = 4; at < secret.length; at++) {
      const typo = secret.slice(0, at) + (secret[at] === 'x' ? 'y' : 'x') + secret.slice(at + 1)
      expect(parseSecret(typo)).toBeNull()
    }
    expect(parseSecret(secret.replace('kwk_', 'kwx_'))).toBeNull()
    expect(parseSecret(`${secret}0`)).toBeNull()
    expect(parseSecret('')).toBeNull()
  })

  test('accepts a CRC-32 in six base62 characters as the checksum', () => {
    expect(parseSecret(`kwk_${'0'.repeat(30)}2C8GjS`)).toEqual({ kind: 'API_KEY' })
  })
})
