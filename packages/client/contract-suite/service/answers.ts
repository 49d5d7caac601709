/**
 * Signs the responses of the suite's service (docs/api.md#g3), and forges signatures. The code is independent of the validator's. Neighbours in
 * the tree are random hashes, because a client cannot distinguish them from the hashes of other responses.
 */

import { createHash, createPrivateKey, randomBytes, sign } from 'node:crypto'

import { generateKeyPair, type KeyPair } from '@keyward/license-file'

/** The request and the response that a signature is about. */
export interface SignedFacts {
  path: string
  status: number
  apiKey: string
  request: string
  response: string
}

/** The differences from a genuine signature. */
export interface Forgery {
  facts?: (facts: SignedFacts) => SignedFacts
  /** The key that signs the delegation. */
  delegatedBy?: KeyPair
  /** The key that signs the statement. */
  statedBy?: KeyPair
  /** The text of the delegation, instead of the one for the validator's key. */
  delegation?: string
  kid?: string
  /** The times relative to now, in milliseconds. */
  notBeforeMs?: number
  notAfterMs?: number
  timeMs?: number
  /** The number of neighbours on the path, by default 2. */
  steps?: number
  /** Changes the steps of the path. */
  path?: (steps: Buffer[]) => Buffer[]
  /** Changes the whole header. Null sends none. */
  header?: (header: string) => string | null
}

const DAY_MS = 24 * 60 * 60 * 1000

export class AnswerSigner {
  readonly #validator = generateKeyPair()
  /** The forgery of all responses from now on. */
  forgery: Forgery = {}

  /** Returns the value of the header, or null for no header. `signer` is the key of the organization. */
  sign(given: SignedFacts, signer: KeyPair): string | null {
    const { forgery } = this
    const { notBeforeMs = -DAY_MS, notAfterMs = DAY_MS, timeMs = 0, statedBy = this.#validator } = forgery
    const facts = forgery.facts?.(given) ?? given
    const sides = Array.from({ length: forgery.steps ?? 2 }, (_, n) =>
      Buffer.concat([Buffer.of(n % 2), randomBytes(32)]),
    )
    const root = sides.reduce(climb, leafOf(facts))
    const validator = base64url(this.#validator.publicKey)
    const kid = forgery.kid ?? signer.keyId
    const delegation = `keyward-delegation-v1 ${kid} ${time(notBeforeMs)} ${time(notAfterMs)} ${validator}`
    const parts = [
      signed(forgery.delegation ?? delegation, forgery.delegatedBy ?? signer),
      signed(`keyward-answers-v1 ${time(timeMs)} ${base64url(root)}`, statedBy),
      base64url(Buffer.concat(forgery.path?.(sides) ?? sides)),
    ]
    const header = parts.join('.')
    return forgery.header === undefined ? header : forgery.header(header)
  }
}

function leafOf({ path, status, apiKey, request, response }: SignedFacts): Buffer {
  const hashes = [apiKey, request, response].map((text) => base64url(sha256(Buffer.from(text))))
  return sha256(Buffer.from(`keyward-answer-v1 ${path} ${status} ${hashes.join(' ')}`))
}

function climb(node: Buffer, step: Buffer): Buffer {
  const neighbour = step.subarray(1)
  return sha256(Buffer.concat([Buffer.of(1), ...(step[0] === 0 ? [node, neighbour] : [neighbour, node])]))
}

function signed(text: string, { publicKey, privateKey }: KeyPair): string {
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: base64url(publicKey), d: base64url(privateKey) }
  const signature = sign(null, Buffer.from(text), createPrivateKey({ key: jwk, format: 'jwk' }))
  return `${base64url(Buffer.from(text))}.${base64url(signature)}`
}

function time(fromNowMs: number): string {
  return new Date(Date.now() + fromNowMs).toISOString()
}

function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64url')
}

function sha256(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes).digest()
}
