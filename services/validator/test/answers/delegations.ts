/** Signs delegations in place of management, and verifies responses as an app does. */

import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'

import { keyIdOf, type VerificationKey, verifyAnswer } from '@keyward/license-file'
import { insertSigningKey } from '@keyward/testkit'
import { expect } from 'vitest'

import { type Reply, send, type Sent, until, type World } from '../harness.ts'

const HOUR_MS = 3_600_000

export interface SigningKey extends VerificationKey {
  id: string
  privateKey: KeyObject
}

export async function createSigningKey({ database, organizationId }: World): Promise<SigningKey> {
  const { privateKey, publicKey: exported } = generateKeyPairSync('ed25519')
  const publicKey = Buffer.from(exported.export({ format: 'jwk' }).x ?? '', 'base64url')
  const keyId = keyIdOf(publicKey)
  const { id } = await insertSigningKey(database.pool, { organizationId, publicKey, keyId })
  return { id, keyId, publicKey, privateKey }
}

/** Delegates to every validator of the database, by default from an hour ago for two hours. */
export async function delegate(
  { database: { pool } }: World,
  key: SigningKey,
  { fromMs = -HOUR_MS, untilMs = HOUR_MS }: { fromMs?: number; untilMs?: number } = {},
): Promise<void> {
  const sql = `select details ->> 'answerKey' as key from validators where details ? 'answerKey'`
  await until(async () => (await pool.query(sql)).rows.length > 0)
  const { rows } = await pool.query<{ key: string }>(sql)
  const [notBefore, notAfter] = [fromMs, untilMs].map((ms) => new Date(Date.now() + ms).toISOString())
  const delegations = rows.map(({ key: validator }) => {
    const text = Buffer.from(`keyward-delegation-v1 ${key.keyId} ${notBefore} ${notAfter} ${validator}`)
    const signature = sign(null, text, key.privateKey).toString('base64url')
    return [validator, { signed: `${text.toString('base64url')}.${signature}`, notBefore, notAfter }]
  })
  await pool.query('update signing_keys set delegations = $1 where id = $2', [Object.fromEntries(delegations), key.id])
}

/** Sends a request that asks for a signature. */
export async function askSigned(
  { port }: { port: number },
  path: string,
  key: VerificationKey,
  { body = {}, secret = '', ...sent }: Omit<Sent, 'body'> & { body?: object },
): Promise<Reply & { request: string }> {
  const nonce = randomBytes(16).toString('base64url')
  const request = JSON.stringify({ ...body, nonce, kid: key.keyId })
  return { ...(await send(port, path, { ...sent, body: request, secret })), request }
}

/** Returns the outcome of the verification of a reply. */
export async function verify(
  key: VerificationKey,
  path: string,
  apiKey: string,
  reply: Reply & { request: string },
): Promise<string> {
  const { 'keyward-signature': header = null } = reply.headers
  const verified = await verifyAnswer({
    signature: header === null ? null : String(header),
    path,
    status: reply.status,
    apiKey,
    request: Buffer.from(reply.request),
    response: Buffer.from(reply.text),
    key,
    latestSignedMs: 0,
  })
  if (!verified.ok) return verified.reason
  expect(Math.abs(Date.now() - verified.timeMs)).toBeLessThan(60_000)
  return 'SIGNED'
}
