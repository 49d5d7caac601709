/**
 * Signs the responses to requests that ask for it (docs/api.md#g1). The responses of one turn of the event loop share one signature, which
 * takes about as long as the rest of a check. A request that does not ask for a signature never reaches this code.
 */

import { hash, type KeyObject, sign } from 'node:crypto'

import { toHex } from '@keyward/database/ids'
import type { IndexReader } from '@keyward/engine'

import type { Exchange, ResponseSigner } from '../http/exchange.ts'
import type { PublicKeyReplica } from '../public-keys/replica.ts'
import type { Counters } from '../shared/counters.ts'
import { sha256, treeOf } from './merkle.ts'

/** The maximum number of responses that share a signature. It bounds the length of a path. */
const MAX_LEAVES = 64
/** The maximum number of API keys whose hash is kept. */
const MAX_KEY_HASHES = 1_000

interface Waiting {
  /** The first two parts of the signature. */
  delegation: string
  leaf: string
  done: (signature: string) => void
}

interface SignerParts {
  reader: IndexReader
  counters: Counters
  replica: PublicKeyReplica
  key: KeyObject
}

export class AnswerSigner {
  readonly #parts: SignerParts
  /** The responses of this turn. */
  #waiting: Waiting[] = []
  readonly #organizationId = new Uint8Array(16)
  /** The hashes of API keys by the header that contained the key. All keys are valid, because `begin` follows the authentication. */
  readonly #keyHashes = new Map<string, string>()

  constructor(parts: SignerParts) {
    this.#parts = parts
  }

  /**
   * Makes the exchange sign its response, if the validator has a delegation of the key `kid`. Otherwise the response stays unsigned. The body
   * is the request's, and `organization` the row of the caller's organization in the index.
   */
  begin(exchange: Exchange, body: Uint8Array, organization: number, kid: string, nowMs: number): void {
    const { counters, reader, replica } = this.#parts
    const isKnown = reader.organizationId(organization, this.#organizationId)
    const delegation = isKnown ? replica.delegation(toHex(this.#organizationId), kid, nowMs) : null
    if (delegation === null) return counters.count('unsigned')
    const request = `${this.#hashOfKey(exchange.authorization)} ${textHash(body)}`
    exchange.signer = this.#signerOf(delegation, exchange.path, request)
  }

  /** Returns the hash of the API key in a header. Most requests have one of a few API keys. */
  #hashOfKey(authorization: string): string {
    const known = this.#keyHashes.get(authorization)
    if (known !== undefined) return known
    if (this.#keyHashes.size === MAX_KEY_HASHES) this.#keyHashes.clear()
    const hashed = textHash(authorization.slice(7).trim())
    this.#keyHashes.set(authorization, hashed)
    return hashed
  }

  #signerOf(delegation: string, path: string, request: string): ResponseSigner {
    return (status, body, done) => {
      const text = `keyward-answer-v1 ${path} ${status} ${request} ${textHash(body)}`
      this.#parts.counters.count('signed')
      if (this.#waiting.push({ delegation, leaf: sha256(text), done }) === 1) setImmediate(() => this.#signAll())
    }
  }

  #signAll(): void {
    const waiting = this.#waiting
    this.#waiting = []
    const timeMs = Date.now()
    for (let i = 0; i < waiting.length; i += MAX_LEAVES) this.#signBatch(waiting.slice(i, i + MAX_LEAVES), timeMs)
  }

  #signBatch(batch: readonly Waiting[], timeMs: number): void {
    const { root, paths } = treeOf(batch.map(({ leaf }) => leaf))
    const text = `keyward-answers-v1 ${new Date(timeMs).toISOString()} ${root}`
    const statement = Buffer.from(text)
    const signature = sign(null, statement, this.#parts.key)
    const signed = `${statement.toString('base64url')}.${signature.toString('base64url')}`
    batch.forEach(({ delegation, done }, i) => done(`${delegation}.${signed}.${paths[i]!}`))
  }
}

function textHash(data: string | Uint8Array): string {
  return hash('sha256', data, 'base64url')
}
