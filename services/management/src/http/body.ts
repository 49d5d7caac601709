/**
 * Reads a JSON body of at most 2 MiB. Bytes that are not UTF-8 are an error and never replaced, so that two different ids cannot
 * become equal.
 */

import express, { type Request, type Response } from 'express'

import { ApiError, invalid } from './problem.ts'
import { pointerTo } from './validation-errors.ts'

const MAX_BODY_BYTES = 2 * 1024 * 1024
/** Deeper than any schema allows. Bounds the cost of a body of nested brackets. */
const MAX_DEPTH = 20
const readRaw = express.raw({ type: () => true, limit: MAX_BODY_BYTES })

function hasBody(request: Request): boolean {
  const length = request.headers['content-length']
  return request.headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0')
}

function isJson(contentType: string | undefined): boolean {
  return /^application\/json\s*(?:;\s*charset\s*=\s*"?utf-8"?\s*)?$/i.test(contentType?.trim() ?? '')
}

function bodyError(error: unknown): unknown {
  const type = error instanceof Error && 'type' in error ? error.type : ''
  if (type === 'entity.too.large')
    return new ApiError('PAYLOAD_TOO_LARGE', 'The body must not be larger than 2 MiB. Send several smaller requests.')
  if (type === 'encoding.unsupported')
    return new ApiError('UNSUPPORTED_MEDIA_TYPE', 'The content-encoding must be gzip, deflate, br or identity.')
  if (error instanceof Error && 'status' in error)
    return new ApiError('MALFORMED_JSON', 'The body could not be read completely. Send the request again.')
  return error
}

function readBytes(request: Request, response: Response): Promise<unknown> {
  return new Promise((resolve, reject) => {
    readRaw(request, response, (error?: unknown) =>
      error === undefined ? resolve(request.body) : reject(bodyError(error)),
    )
  })
}

function parse(bytes: Uint8Array): { text: string; parsed: unknown } {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return { text, parsed: JSON.parse(text) }
  } catch {
    throw new ApiError('MALFORMED_JSON', 'The body must be JSON in UTF-8.')
  }
}

/**
 * Throws INVALID_REQUEST when any object has a member `__proto__`, which JavaScript could drop on the way to the database. Walks the
 * body only if its text can contain the name.
 */
function rejectProto(text: string, parsed: unknown): void {
  if (!/__proto__|\\u/i.test(text)) return
  const open: { value: unknown; path: readonly string[] }[] = [{ value: parsed, path: [] }]
  for (let next = open.pop(); next; next = open.pop()) {
    const { value, path } = next
    if (typeof value !== 'object' || value === null) continue
    for (const [name, member] of Object.entries(value)) {
      if (name === '__proto__') throw invalid(pointerTo('#', [...path, name]), 'is not allowed as a name')
      if (path.length < MAX_DEPTH) open.push({ value: member, path: [...path, name] })
    }
  }
}

/** Returns the parsed body, or undefined when there is none. Throws PAYLOAD_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE or MALFORMED_JSON. */
export async function readJson(request: Request, response: Response): Promise<unknown> {
  if (!hasBody(request)) return undefined
  if (!isJson(request.headers['content-type']))
    throw new ApiError('UNSUPPORTED_MEDIA_TYPE', 'Send the body with "content-type: application/json".')
  const bytes = await readBytes(request, response)
  if (!(bytes instanceof Uint8Array)) return undefined
  const { text, parsed } = parse(bytes)
  rejectProto(text, parsed)
  return parsed
}
