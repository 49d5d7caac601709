/**
 * Reads a JSON body of bounded size. The bytes are decoded strictly: what is not UTF-8 is refused rather than replaced, so that
 * two different ids never become one.
 */
import express, { type Request, type Response } from 'express'

import { invalid, Refusal } from './problem.ts'
import { pointerTo } from './validation-errors.ts'

const maxBodyBytes = 2 * 1024 * 1024
/** Deeper than any schema takes, so that a body of nothing but brackets costs nothing. */
const deepest = 20
const readRaw = express.raw({ type: () => true, limit: maxBodyBytes })

function hasBody(request: Request): boolean {
  const length = request.headers['content-length']
  return request.headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0')
}

function isJson(contentType: string | undefined): boolean {
  return /^application\/json\s*(?:;\s*charset\s*=\s*"?utf-8"?\s*)?$/i.test(contentType?.trim() ?? '')
}

function refusalOf(error: unknown): unknown {
  const type = error instanceof Error && 'type' in error ? error.type : ''
  if (type === 'entity.too.large') return new Refusal('PAYLOAD_TOO_LARGE', 'A body may have at most 2 MiB.')
  if (type === 'encoding.unsupported')
    return new Refusal('UNSUPPORTED_MEDIA_TYPE', 'The content encoding is not known.')
  if (error instanceof Error && 'status' in error) return new Refusal('MALFORMED_JSON', 'The body could not be read.')
  return error
}

function readBytes(request: Request, response: Response): Promise<unknown> {
  return new Promise((resolve, reject) => {
    readRaw(request, response, (error?: unknown) =>
      error === undefined ? resolve(request.body) : reject(refusalOf(error)),
    )
  })
}

function parse(bytes: Uint8Array): { text: string; parsed: unknown } {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return { text, parsed: JSON.parse(text) }
  } catch {
    throw new Refusal('MALFORMED_JSON', 'The body is not JSON in UTF-8.')
  }
}

/**
 * A member that JavaScript gives a meaning of its own could be lost on its way to the database, so it is refused wherever it stands.
 * Looked for only where the text can hold it.
 */
function refuseProto(text: string, parsed: unknown): void {
  if (!/__proto__|\\u/i.test(text)) return
  const open: { value: unknown; path: readonly string[] }[] = [{ value: parsed, path: [] }]
  for (let next = open.pop(); next; next = open.pop()) {
    const { value, path } = next
    if (typeof value !== 'object' || value === null) continue
    for (const [name, member] of Object.entries(value)) {
      if (name === '__proto__') throw invalid(pointerTo('#', [...path, name]), 'is a name that is not taken')
      if (path.length < deepest) open.push({ value: member, path: [...path, name] })
    }
  }
}

/** The parsed body; undefined when there is none. Refuses with 413, 415 and 400. */
export async function readJson(request: Request, response: Response): Promise<unknown> {
  if (!hasBody(request)) return undefined
  if (!isJson(request.headers['content-type']))
    throw new Refusal('UNSUPPORTED_MEDIA_TYPE', 'Send the body with "content-type: application/json".')
  const bytes = await readBytes(request, response)
  if (!(bytes instanceof Uint8Array)) return undefined
  const { text, parsed } = parse(bytes)
  refuseProto(text, parsed)
  return parsed
}
