/**
 * Reads the body of a request up to the limit of its endpoint, and hashes its bytes for an idempotency key. After the body has exceeded the
 * limit, unread-body.ts handles its remaining bytes.
 */

import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Readable, Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'

import { parseJson } from './json.ts'
import { ApiError } from './problem.ts'
import { RowSplitter, type SplitBody, type SplitterOptions } from './row-splitter.ts'

const DECODERS: Record<string, () => Transform> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

/** The limits of the bodies that an endpoint accepts. */
interface BodyLimits {
  /** The maximum size of the decoded body in bytes. */
  maxBytes: number
  /** The options for splitting the rows of an import. Absent for any other request. */
  rows?: SplitterOptions
  /** Whether to hash the body. */
  isHashed: boolean
  /** Whether to keep the bytes instead of parsing them, because a signature covers them. */
  isSigned?: boolean
  /** Called with the number of bytes of each decoded chunk before the chunk is kept. Throws to reject the body. */
  take?: (bytes: number) => void
}

const NO_BYTES = new Uint8Array()

export interface RequestBody {
  /** The parsed body, or undefined when the request has no body, or `split` or `bytes` contains the body. */
  value: unknown
  /** The split body of an import, or null for any other request. */
  split: SplitBody | null
  /** SHA-256 of the decoded bytes, or null when the body is not hashed. */
  hash: Buffer | null
  /** The decoded bytes, empty unless they are kept. */
  bytes: Uint8Array
}

function hasBody(request: IncomingMessage): boolean {
  const length = request.headers['content-length']
  return request.headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0')
}

function isJson(contentType: string | undefined): boolean {
  return /^application\/json\s*(?:;\s*charset\s*=\s*"?utf-8"?\s*)?$/i.test(contentType?.trim() ?? '')
}

function sizeName(bytes: number): string {
  return bytes < 1024 * 1024 ? `${bytes / 1024} KiB` : `${bytes / 1024 / 1024} MiB`
}

function tooLarge(maxBytes: number): ApiError {
  const detail = `The body of this request must not be larger than ${sizeName(maxBytes)}. Send several smaller requests.`
  return new ApiError('PAYLOAD_TOO_LARGE', detail)
}

/** Returns the decoder for the `Content-Encoding` of the request, or null when the body is not encoded. Throws UNSUPPORTED_MEDIA_TYPE. */
function decoderOf(request: IncomingMessage): Transform | null {
  const encoding = (request.headers['content-encoding'] ?? 'identity').toLowerCase()
  if (encoding === 'identity') return null
  const create = Object.hasOwn(DECODERS, encoding) ? DECODERS[encoding] : undefined
  if (!create)
    throw new ApiError('UNSUPPORTED_MEDIA_TYPE', 'The content-encoding must be gzip, deflate, br or identity.')
  return create()
}

/**
 * Passes the decoded bytes to `take` as they arrive. Rejects with PAYLOAD_TOO_LARGE, MALFORMED_JSON, or an error that `take` throws. Throws
 * UNSUPPORTED_MEDIA_TYPE.
 */
function readChunks(request: IncomingMessage, maxBytes: number, take: (chunk: Buffer) => void): Promise<void> {
  const decoder = decoderOf(request)
  const source: Readable = decoder === null ? request : request.pipe(decoder)
  let received = 0
  return new Promise((resolve, reject) => {
    const finish = (settle: () => void) => {
      source.removeAllListeners('data')
      if (decoder !== null) request.unpipe(decoder)
      decoder?.destroy()
      if (!request.complete) request.pause()
      settle()
    }
    const fail = (error: unknown) => finish(() => reject(error))
    const incomplete = () =>
      fail(new ApiError('MALFORMED_JSON', 'The body could not be read completely. Send the request again.'))
    source.on('data', (chunk: Buffer) => {
      received += chunk.length
      if (received > maxBytes) return fail(tooLarge(maxBytes))
      try {
        take(chunk)
      } catch (error) {
        fail(error)
      }
    })
    source.once('end', () => finish(resolve))
    source.on('error', incomplete)
    if (decoder !== null) request.on('error', incomplete)
    request.once('close', () => {
      if (!request.complete) incomplete()
    })
  })
}

/**
 * Returns the body. Throws PAYLOAD_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE, MALFORMED_JSON, and INVALID_REQUEST for the name `__proto__` or
 * nesting that is too deep. The rows of an import are returned unparsed.
 */
export async function readBody(
  request: IncomingMessage,
  { maxBytes, rows, isHashed, isSigned = false, take }: BodyLimits,
): Promise<RequestBody> {
  const hash = isHashed ? createHash('sha256') : null
  const digest = () => hash?.digest() ?? null
  if (!hasBody(request)) return { value: undefined, split: null, hash: digest(), bytes: NO_BYTES }
  if (!isJson(request.headers['content-type']))
    throw new ApiError('UNSUPPORTED_MEDIA_TYPE', 'Send the body with "content-type: application/json".')
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes)
  const chunks: Buffer[] = []
  const splitter = rows && new RowSplitter(rows)
  await readChunks(request, maxBytes, (chunk) => {
    take?.(chunk.length)
    hash?.update(chunk)
    if (splitter) splitter.push(chunk)
    else chunks.push(chunk)
  })
  if (splitter) return { value: undefined, split: splitter.end(), hash: digest(), bytes: NO_BYTES }
  const bytes = Buffer.concat(chunks)
  return {
    value: isSigned ? undefined : parseJson(bytes),
    split: null,
    hash: digest(),
    bytes: isSigned ? bytes : NO_BYTES,
  }
}
