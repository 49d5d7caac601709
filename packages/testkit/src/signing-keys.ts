/** Creates signing keys and signs delegations in place of management (docs/api.md#g2). */

import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import type pg from 'pg'

import { insertSigningKey } from './builders.ts'

const HOUR_MS = 3_600_000

export interface SigningKey {
  id: string
  keyId: string
  publicKey: Uint8Array
  privateKey: KeyObject
}

/** Inserts a signing key that can sign. */
export async function createSigningKey(pool: pg.Pool, organizationId: string): Promise<SigningKey> {
  const { privateKey, publicKey: exported } = generateKeyPairSync('ed25519')
  const publicKey = Buffer.from(exported.export({ format: 'jwk' }).x ?? '', 'base64url')
  return { ...(await insertSigningKey(pool, { organizationId, publicKey })), publicKey, privateKey }
}

/** Delegates to every validator of the database, by default from an hour ago for two hours. Waits for the first validator. */
export async function delegate(
  pool: pg.Pool,
  key: SigningKey,
  { fromMs = -HOUR_MS, untilMs = HOUR_MS }: { fromMs?: number; untilMs?: number } = {},
): Promise<void> {
  const [notBefore, notAfter] = [fromMs, untilMs].map((ms) => new Date(Date.now() + ms).toISOString())
  const delegations = (await answerKeys(pool)).map((validator) => {
    const text = Buffer.from(`keyward-delegation-v1 ${key.keyId} ${notBefore} ${notAfter} ${validator}`)
    const signature = sign(null, text, key.privateKey).toString('base64url')
    return [validator, { signed: `${text.toString('base64url')}.${signature}`, notBefore, notAfter }]
  })
  await pool.query('update signing_keys set delegations = $1 where id = $2', [Object.fromEntries(delegations), key.id])
}

/** Returns the public keys with which the validators sign responses. */
async function answerKeys(pool: pg.Pool): Promise<string[]> {
  const sql = `select details ->> 'answerKey' as key from validators where details ? 'answerKey'`
  for (;;) {
    const { rows } = await pool.query<{ key: string }>(sql)
    if (rows.length > 0) return rows.map(({ key }) => key)
    await sleep(50)
  }
}
