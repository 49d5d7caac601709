/**
 * Signs the responses to requests that ask for it (docs/api.md#g1). The responses of one turn of the event loop share one signature, which
 * takes about as long as the rest of a check. A request that does not ask for a signature never reaches this code.
 */

import { hash, type KeyObject, sign } from 'node:crypto'

import { toHex } from '@keyward/database/ids'
import type { IndexReader } from '@keyward/engine'

import type { Exchange, ResponseSigner } from '../http/exchange.ts'
import type { PreparedResponse } from '../http/responses.ts'
import type { PublicKeyReplica } from '../public-keys/replica.ts'
import { MAX_DELEGATION_LENGTH } from '../public-keys/store.ts'
import type { Counters } from '../shared/counters.ts'
import { MAX_LEAVES, MAX_PATH_LENGTH, sha256, Tree } from './merkle.ts'

const LEAF_START = 'keyward-answer-v1'
const SPACE = 32
/** The memory for the bodies of one turn. Further bodies are copied one by one. */
const COPIES_BYTES = 64 * 1024
/** The maximum length of the parts between the delegation and the path. */
const SIGNED_LENGTH = 256
/** The maximum number of API keys whose hash is kept. */
const MAX_KEY_HASHES = 1_000

interface SignerParts {
  reader: IndexReader
  counters: Counters
  replica: PublicKeyReplica
  key: KeyObject
}

export class AnswerSigner {
  readonly #parts: SignerParts
  /** The responses of this turn. */
  #waiting: Answer[] = []
  readonly #tree = new Tree()
  /** The memory of one header. */
  readonly #header = Buffer.alloc(MAX_DELEGATION_LENGTH + SIGNED_LENGTH + MAX_PATH_LENGTH)
  readonly #view = new DataView(this.#header.buffer, this.#header.byteOffset, this.#header.length)
  /** The text of one leaf. */
  readonly #leaf = Buffer.alloc(256, LEAF_START)
  /** Copies of the bodies of this turn, and their length. */
  readonly #copies = Buffer.alloc(COPIES_BYTES)
  #copied = 0
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
    exchange.signer = new Answer(this, exchange, delegation, this.#hashOfKey(exchange.authorization), textHash(body))
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

  /** Adds a response to those of this turn. */
  add(answer: Answer): void {
    this.#parts.counters.count('signed')
    if (this.#waiting.push(answer) === 1) setImmediate(() => this.#signAll())
  }

  /** Returns a copy of a body, which a later response may overwrite. The copy is valid until the end of this turn. */
  copy(body: Uint8Array): Uint8Array {
    const start = this.#copied
    const end = start + body.length
    if (end > this.#copies.length) return Buffer.from(body)
    this.#copies.set(body, start)
    this.#copied = end
    return this.#copies.subarray(start, end)
  }

  /** Returns the hash of a leaf. Writing the text into memory saves a fifth of the time of hashing a string. */
  leafOf(path: string, status: string, { keyHash, requestHash }: Answer, body: Uint8Array): string {
    let end = LEAF_START.length
    for (const part of [path, status, keyHash, requestHash, textHash(body)]) {
      this.#leaf[end++] = SPACE
      for (let i = 0; i < part.length; i++) this.#leaf[end++] = part.charCodeAt(i)
    }
    return sha256(this.#leaf.subarray(0, end))
  }

  #signAll(): void {
    const waiting = this.#waiting
    this.#waiting = []
    const time = new Date().toISOString()
    for (let i = 0; i < waiting.length; i += MAX_LEAVES) this.#signBatch(waiting.slice(i, i + MAX_LEAVES), time)
    this.#copied = 0
  }

  #signBatch(batch: readonly Answer[], time: string): void {
    const root = this.#tree.build(batch.map(({ leaf }) => leaf))
    const statement = Buffer.from(`keyward-answers-v1 ${time} ${root}`)
    const signature = sign(null, statement, this.#parts.key)
    const signed = `.${statement.toString('base64url')}.${signature.toString('base64url')}.`
    let written = ''
    let path = 0
    for (let i = 0; i < batch.length; i++) {
      const { exchange, response, delegation } = batch[i]!
      if (delegation !== written) path = this.#header.write(delegation + signed, 'latin1')
      written = delegation
      exchange.sendSigned(response!, this.#header.subarray(0, this.#tree.writePath(i, this.#view, path)))
    }
  }
}

/** The response of one exchange, which is signed. */
class Answer implements ResponseSigner {
  readonly #signer: AnswerSigner
  readonly exchange: Exchange
  /** The first two parts of the header. */
  readonly delegation: string
  readonly keyHash: string
  readonly requestHash: string
  response: PreparedResponse | null = null
  leaf = ''

  constructor(signer: AnswerSigner, exchange: Exchange, delegation: string, keyHash: string, requestHash: string) {
    this.#signer = signer
    this.exchange = exchange
    this.delegation = delegation
    this.keyHash = keyHash
    this.requestHash = requestHash
  }

  sign({ status, body, headers, closes }: PreparedResponse): void {
    this.leaf = this.#signer.leafOf(this.exchange.path, status === '' ? '200' : status.slice(0, 3), this, body)
    this.response = { status, body: this.#signer.copy(body), headers, closes }
    this.#signer.add(this)
  }
}

function textHash(data: string | Uint8Array): string {
  return hash('sha256', data, 'base64url')
}
