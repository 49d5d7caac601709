/**
 * A value that Postgres must find and must not write down. It goes over masked, and is unmasked inside of the statement with a key
 * that came with the connection, as a setting of its start: statement logs hold statements and their parameters, not that.
 */
import { createHash, randomBytes } from 'node:crypto'

import { type RawBuilder, sql } from 'kysely'

const setting = 'keyward.mask'
/** SHA-512 gives as many bytes of mask for each value; addresses and countries are shorter. */
const longest = 64

const key = randomBytes(32).toString('hex')

/** The address of the database with the key as a setting of every connection to it. */
export function withMask(databaseUrl: string): string {
  const url = new URL(databaseUrl)
  const others = url.searchParams.get('options')
  url.searchParams.set('options', [...(others === null ? [] : [others]), `-c ${setting}=${key}`].join(' '))
  return url.href
}

/** Whether the connection brought the key; a pooler may have dropped it. */
export const hasMask = sql<boolean>`coalesce(current_setting(${sql.lit(setting)}, true), '') <> ''`

function maskOf(nonce: string, place: number): Buffer {
  return createHash('sha512').update(`${key} ${nonce} ${place}`).digest()
}

/** The values as rows `(value bytea)` of a statement that does not hold them. Each is at most 64 bytes. */
export function maskedValues(values: readonly string[]): RawBuilder<unknown> {
  const nonce = randomBytes(16).toString('hex')
  const masked = values.map((value, i) => {
    const bytes = Buffer.from(value)
    if (bytes.length > longest) throw new RangeError(`At most ${longest} bytes can be masked`)
    const mask = maskOf(nonce, i + 1)
    return bytes.map((byte, at) => byte ^ (mask[at] ?? 0))
  })
  return sql`(
    select (
      select string_agg(set_byte('\\x00'::bytea, 0, get_byte(m.masked, i) # get_byte(m.mask, i)), ''::bytea order by i)
      from generate_series(0, length(m.masked) - 1) i
    ) as value
    from (
      select masked, sha512(convert_to(current_setting(${sql.lit(setting)}) || ' ' || ${nonce} || ' ' || place, 'UTF8')) as mask
      from unnest(${masked}::bytea[]) with ordinality g (masked, place) offset 0
    ) m
  )`
}
