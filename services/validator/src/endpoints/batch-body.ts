/**
 * Reads the body of a batch (docs/api.md#h13) in one pass over its bytes. Plain checks (request-body-fast-path.ts) are read directly. Every
 * other check is cut out and read by `parseBody`, which limits the number of its members as in the body of a single request. Apart from
 * this limit and MAX_BATCH_MEMBERS, the result is that of JSON.parse and the schema of the public API.
 */

import { MAX_BATCH_CHECKS } from '@keyward/contract/validation'

import { describeBody } from './request-body-errors.ts'
import { beginBody, parsePlainObject, skipSpace } from './request-body-fast-path.ts'
import { hasTooManyMembers, MAX_MEMBERS, parseBody, type RequestBody } from './request-body.ts'

/** The maximum number of members in a batch outside of its plain checks. Each new name costs JSON.parse about a microsecond. */
export const MAX_BATCH_MEMBERS = 4_096

const QUOTE = 34
const COMMA = 44
const COLON = 58
const OPEN_BRACKET = 91
const BACKSLASH = 92
const CLOSE_BRACKET = 93
const OPEN_BRACE = 123
const CLOSE_BRACE = 125

const decoder = new TextDecoder('utf-8', { fatal: true })
const CHECKS = new TextEncoder().encode('"checks"')

export class BatchBody {
  /** The number of checks in the batch. */
  count = 0
  /** The number of checks that were not plain. */
  slowCount = 0
  /** For each check, the message of its error, or null when the check is valid. */
  readonly errors: (string | null)[] = Array.from({ length: MAX_BATCH_CHECKS }, () => null)
  readonly #checks: readonly RequestBody[]
  /** The number of members outside of plain checks. */
  #members = 0

  /** `checks` are MAX_BATCH_CHECKS bodies, which `read` fills. */
  constructor(checks: readonly RequestBody[]) {
    this.#checks = checks
  }

  /** Reads a body. Returns false when the body is not a valid batch. `describeBatch` then returns the reason. */
  read(body: Uint8Array): boolean {
    this.count = this.slowCount = this.#members = 0
    if (!beginBody(body)) return false
    const hasByteOrderMark = body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf
    let at = skipSpace(body, hasByteOrderMark ? 3 : 0)
    if (body[at] !== OPEN_BRACE) return false
    do {
      at = this.#readMember(body, skipSpace(body, at + 1))
      if (at < 0) return false
      at = skipSpace(body, at)
    } while (body[at] === COMMA)
    return this.count > 0 && body[at] === CLOSE_BRACE && skipSpace(body, at + 1) === body.length
  }

  /** Reads a member of the outer object. Returns the index after the member, or -1 if the member is invalid. */
  #readMember(body: Uint8Array, from: number): number {
    if (body[from] !== QUOTE) return -1
    const nameEnd = stringEnd(body, from)
    if (nameEnd < 0) return -1
    const name = isChecks(body, from, nameEnd) ? 'checks' : jsonAt(body, from, nameEnd)
    if (name === undefined) return -1
    const colon = skipSpace(body, nameEnd)
    if (body[colon] !== COLON) return -1
    const at = skipSpace(body, colon + 1)
    if (name === 'checks') {
      this.count = 0 // of repeated names, the last one counts
      if (body[at] === OPEN_BRACKET) return this.#readChecks(body, at + 1)
    }
    const end = this.#valueEnd(body, at)
    return end < 0 || jsonAt(body, at, end) === undefined ? -1 : end
  }

  #readChecks(body: Uint8Array, from: number): number {
    let at = skipSpace(body, from)
    if (body[at] === CLOSE_BRACKET) return at + 1
    for (; this.count < MAX_BATCH_CHECKS; at = skipSpace(body, at + 1)) {
      const n = this.count
      let end = parsePlainObject('validateV2', body, at, this.#checks[n]!)
      if (end < 0) end = this.#readSlowly(body, at, n)
      else this.errors[n] = null
      if (end < 0) return -1
      this.count++
      at = skipSpace(body, end)
      if (body[at] === CLOSE_BRACKET) return at + 1
      if (body[at] !== COMMA) return -1
    }
    return -1
  }

  /** Reads a check that is not plain. Returns the index after the check, or -1 if the check is not JSON. */
  #readSlowly(body: Uint8Array, at: number, n: number): number {
    this.slowCount++
    const before = this.#members
    const end = this.#valueEnd(body, at)
    if (end < 0) return -1
    const check = body.subarray(at, end)
    const isValid = parseBody('validateV2', check, this.#checks[n]!)
    const hasTooMany = this.#members - before > MAX_MEMBERS
    if (!isValid && !hasTooMany && jsonAt(body, at, end) === undefined) return -1
    this.errors[n] = isValid ? null : describeBody('validateV2', check)
    return end
  }

  /**
   * Returns the index after the JSON value at `from`, and counts its members. Returns -1 if the value is incomplete, or if the
   * batch has too many members. Only the strings and the number of brackets are verified.
   */
  #valueEnd(body: Uint8Array, from: number): number {
    let depth = 0
    let at = from
    while (at < body.length) {
      const c = body[at]!
      if (c === QUOTE) {
        at = stringEnd(body, at)
        if (at < 0) return -1
      } else if (c === OPEN_BRACE || c === OPEN_BRACKET) {
        depth++
        at++
      } else if (c === CLOSE_BRACE || c === CLOSE_BRACKET) {
        depth--
        at++
        if (depth < 0) return -1
      } else if (depth === 0) return scalarEnd(body, at)
      else {
        if (c === COLON && ++this.#members > MAX_BATCH_MEMBERS) return -1
        at++
      }
      if (depth === 0) return at
    }
    return -1
  }
}

/** Returns the error message of the 422 response to a body that is not a batch. The message contains no values of the body. */
export function describeBatch(body: Uint8Array): string {
  if (hasTooManyMembers(body, MAX_BATCH_MEMBERS)) return `The body has more than ${MAX_BATCH_MEMBERS} members.`
  const value = jsonAt(body, 0, body.length)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return describeBody('validateV2', body)
  const checks = 'checks' in value ? value.checks : undefined
  const expected = `must be an array of 1 to ${MAX_BATCH_CHECKS} checks`
  if (Array.isArray(checks)) return `\`checks\` ${expected}; got ${checks.length}.`
  if (checks !== undefined) return `\`checks\` ${expected}; got another type.`
  return `The body has no \`checks\`. Send a JSON object such as {"checks": [{"license": "..."}]}.`
}

/** Returns the index after the string that begins with the quote at `from`, or -1 if it does not end. */
function stringEnd(body: Uint8Array, from: number): number {
  for (let at = from + 1; at < body.length; at++) {
    if (body[at] === QUOTE) return at + 1
    if (body[at] === BACKSLASH) at++
  }
  return -1
}

/** Returns the index after the number or literal at `from`, or -1 if neither begins there. */
function scalarEnd(body: Uint8Array, from: number): number {
  let at = from
  while (at < body.length && body[at]! > 32 && body[at]! < 127 && body[at] !== COMMA && body[at] !== CLOSE_BRACE) {
    if (body[at] === CLOSE_BRACKET) break
    at++
  }
  return at > from ? at : -1
}

function isChecks(body: Uint8Array, from: number, end: number): boolean {
  if (end - from !== CHECKS.length) return false
  for (let i = 0; i < CHECKS.length; i++) if (body[from + i] !== CHECKS[i]) return false
  return true
}

/** Returns the value that the bytes contain, or undefined if they are not JSON in UTF-8. */
function jsonAt(body: Uint8Array, from: number, end: number): unknown {
  try {
    return JSON.parse(decoder.decode(body.subarray(from, end)))
  } catch {
    return undefined
  }
}
