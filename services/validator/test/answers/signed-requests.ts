/** Sends requests for signed responses, and verifies the responses as an app does. */

import { randomBytes } from 'node:crypto'

import { type VerificationKey, verifyAnswer } from '@keyward/license-file'
import { expect } from 'vitest'

import { type Reply, send, type Sent } from '../harness.ts'

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
