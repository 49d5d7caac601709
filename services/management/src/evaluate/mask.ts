/**
 * Masks values that Postgres must compare but must not log. A value is sent masked, and the statement unmasks it with a key that was
 * sent as a setting when the connection was opened. Statement logs contain statements and parameters, but not this setting.
 */

import { createHash, randomBytes } from 'node:crypto'

import { type RawBuilder, sql } from 'kysely'

const SETTING = 'keyward.mask'
/** The length of a mask, a SHA-512 hash. Addresses and countries are shorter. */
const MAX_VALUE_BYTES = 64

const KEY = randomBytes(32).toString('hex')

/** Adds the key to a database URL, as a setting of every connection. */
export function withMask(databaseUrl: string): string {
  const url = new URL(databaseUrl)
  const others = url.searchParams.get('options')
  url.searchParams.set('options', [...(others === null ? [] : [others]), `-c ${SETTING}=${KEY}`].join(' '))
  return url.href
}

/** Whether the connection has the key. A pooler may have removed it. */
export const hasMask = sql<boolean>`coalesce(current_setting(${sql.lit(SETTING)}, true), '') <> ''`

function maskOf(nonce: string, place: number): Buffer {
  return createHash('sha512').update(`${KEY} ${nonce} ${place}`).digest()
}

/** Returns rows `(value bytea)` with the values, which the statement contains only masked. A value has at most 64 bytes. */
export function maskedValues(values: readonly string[]): RawBuilder<unknown> {
  const nonce = randomBytes(16).toString('hex')
  const masked = values.map((value, i) => {
    const bytes = Buffer.from(value)
    if (bytes.length > MAX_VALUE_BYTES) throw new RangeError(`at most ${MAX_VALUE_BYTES} bytes can be masked`)
    const mask = maskOf(nonce, i + 1)
    return bytes.map((byte, at) => byte ^ (mask[at] ?? 0))
  })
  return sql`(
    select (
      select string_agg(set_byte('\\x00'::bytea, 0, get_byte(m.masked, i) # get_byte(m.mask, i)), ''::bytea order by i)
      from generate_series(0, length(m.masked) - 1) i
    ) as value
    from (
      select masked, sha512(convert_to(current_setting(${sql.lit(SETTING)}) || ' ' || ${nonce} || ' ' || place, 'UTF8')) as mask
      from unnest(${masked}::bytea[]) with ordinality g (masked, place) offset 0
    ) m
  )`
}
