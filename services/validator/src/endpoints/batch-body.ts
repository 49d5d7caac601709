/**
 * Reads the body of a batch (docs/api.md#h13) in one pass over its bytes. Plain checks (request-body-fast-path.ts) are read directly. Every
 * other check is cut out and read by `parseBody`, with the limits of the body of a single request. Apart from these limits and BATCH_LIMITS,
 * the result is that of JSON.parse and the schema of the public API.
 */

import { batchSignature, MAX_BATCH_CHECKS } from '@keyward/contract/validation'
import { exceededLimit, type JsonLimits, scanElements, scanMembers, valueEnd } from '@keyward/runtime/json-scan'

import { describeBody, describeIssue, describeLimit } from './request-body-errors.ts'
import { beginBody, PlainBodyParser } from './request-body-fast-path.ts'
import { BODY_LIMITS, parseBody, type RequestBody } from './request-body.ts'

/** The limits of a batch outside of its plain checks. */
export const BATCH_LIMITS: JsonLimits = { members: 4_096, depth: BODY_LIMITS.depth }

const OPEN_BRACKET = 91

const decoder = new TextDecoder('utf-8', { fatal: true })
const CHECKS = new TextEncoder().encode('"checks"')

export class BatchBody {
  /** The number of checks in the batch. */
  count = 0
  /** The number of checks that were not plain. */
  slowCount = 0
  /** The id of the key under which the response shall be signed, or null. */
  kid: string | null = null
  /** The members of the outer object that ask for a signature. */
  #signature: { nonce?: unknown; kid?: unknown } = {}
  /** For each check, the message of its error, or null when the check is valid. */
  readonly errors: (string | null)[] = Array.from({ length: MAX_BATCH_CHECKS }, () => null)
  readonly #checks: readonly RequestBody[]
  readonly #parsers: readonly PlainBodyParser[]
  /** The limits for the rest of the batch. */
  readonly #limits: JsonLimits = { ...BATCH_LIMITS }

  /** `checks` are MAX_BATCH_CHECKS bodies, which `read` fills. */
  constructor(checks: readonly RequestBody[]) {
    this.#checks = checks
    this.#parsers = checks.map((check) => new PlainBodyParser(check))
  }

  /** Reads a body. Returns false when the body is not a valid batch. `describeBatch` then returns the reason. */
  read(body: Uint8Array): boolean {
    this.count = this.slowCount = 0
    this.#limits.members = BATCH_LIMITS.members
    if (!beginBody(body)) return false
    this.#signature = {}
    this.kid = null
    if (!scanMembers(body, (name, start) => this.#readMember(body, name, start)) || this.count === 0) return false
    const parsed = batchSignature.safeParse(this.#signature)
    this.kid = parsed.data?.kid ?? null
    return parsed.success
  }

  /** Reads the value of a member of the outer object. Returns the index after the value, or -1 if the member is invalid. */
  #readMember(body: Uint8Array, name: Uint8Array, start: number): number {
    const text = isChecks(name) ? 'checks' : jsonOf(name)
    if (text === undefined) return -1
    if (text === 'checks') {
      this.count = 0 // of repeated names, the last one counts
      if (body[start] === OPEN_BRACKET) return scanElements(body, start + 1, (at) => this.#readCheck(body, at))
    }
    const end = this.#valueEnd(body, start, BATCH_LIMITS.depth - 1)
    const value = end < 0 ? undefined : jsonOf(body.subarray(start, end))
    if (value === undefined) return -1
    if (text === 'nonce' || text === 'kid') this.#signature[text] = value
    return end
  }

  #readCheck(body: Uint8Array, at: number): number {
    const n = this.count
    if (n === MAX_BATCH_CHECKS) return -1
    let end = this.#parsers[n]!.parseObject('validateV2', body, at)
    if (end < 0) end = this.#readSlowly(body, at, n)
    else this.errors[n] = null
    if (end >= 0) this.count++
    return end
  }

  /** Reads a check that is not plain. Returns the index after the check, or -1 if the check is not JSON. */
  #readSlowly(body: Uint8Array, at: number, n: number): number {
    this.slowCount++
    const end = this.#valueEnd(body, at, Infinity)
    if (end < 0) return -1
    const check = body.subarray(at, end)
    const isValid = parseBody('validateV2', check, this.#checks[n]!)
    // A check that exceeds a limit is invalid alone, and need not be JSON.
    if (!isValid && exceededLimit(check, BODY_LIMITS) === null && jsonOf(check) === undefined) return -1
    this.errors[n] = isValid ? null : describeBody('validateV2', check, 'check')
    return end
  }

  #valueEnd(body: Uint8Array, from: number, depth: number): number {
    this.#limits.depth = depth
    return valueEnd(body, from, this.#limits)
  }
}

/** Returns the error message of the 422 response to a body that is not a batch. The message contains no values of the body. */
export function describeBatch(body: Uint8Array): string {
  const exceeded = exceededLimit(body, BATCH_LIMITS)
  if (exceeded !== null) return describeLimit(exceeded, BATCH_LIMITS)
  const value = jsonOf(body)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return describeBody('validateV2', body)
  const checks = 'checks' in value ? value.checks : undefined
  const expected = `must be an array of 1 to ${MAX_BATCH_CHECKS} checks`
  const issue = batchSignature.safeParse(value).error?.issues[0]
  if (Array.isArray(checks) && checks.length > 0 && checks.length <= MAX_BATCH_CHECKS && issue !== undefined)
    return describeIssue(issue, value)
  if (Array.isArray(checks)) return `\`checks\` ${expected}; got ${checks.length}.`
  if (checks !== undefined) return `\`checks\` ${expected}; got another type.`
  return `The body has no \`checks\`. Send a JSON object such as {"checks": [{"license": "..."}]}.`
}

function isChecks(name: Uint8Array): boolean {
  if (name.length !== CHECKS.length) return false
  for (let i = 0; i < CHECKS.length; i++) if (name[i] !== CHECKS[i]) return false
  return true
}

/** Returns the value that the bytes contain, or undefined if they are not JSON in UTF-8. */
function jsonOf(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(bytes))
  } catch {
    return undefined
  }
}
