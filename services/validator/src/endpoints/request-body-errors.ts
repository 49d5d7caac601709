/**
 * Describes why `parseBody` rejects a body (docs/api.md#h3). This code runs only for rejected requests. The description
 * contains no values, because a value can be a license key.
 */

import { byteLength } from '@keyward/contract/text'
import { exceededLimit, type JsonLimits } from '@keyward/runtime/json-scan'

import { type BodyKind, BODY_LIMITS, validateBody } from './request-body.ts'

const API = { validateV1: 'v1', validateV2: 'v2', deactivate: 'v1' } as const
const KEY_NAMES = { v1: 'licenseKey', v2: 'license' } as const

const decoder = new TextDecoder('utf-8', { fatal: true })

/** Returns the error message of the 422 response to an invalid body, or to an invalid check of a batch. */
export function describeBody(kind: BodyKind, body: Uint8Array, name: 'body' | 'check' = 'body'): string {
  if (body.length === 0) return `The body is empty. ${expected(kind)}`
  if (body[0] === 0x1f && body[1] === 0x8b) return 'The body is compressed. Send it uncompressed.'
  if (isUtf16(body)) return 'The body is UTF-16. Send it as UTF-8.'
  const exceeded = exceededLimit(body, BODY_LIMITS)
  if (exceeded !== null) return `${describeLimit(exceeded, BODY_LIMITS, name)} ${expected(kind)}`
  let text: string
  try {
    text = decoder.decode(body)
  } catch {
    return 'The body is not valid UTF-8.'
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    if (/^\w+=/.test(text)) return `The body is a form, not JSON. ${expected(kind)}`
    return 'The body is not valid JSON.'
  }
  if (!isObject(value)) return `The ${name} must be a JSON object; got ${describe(value)}. ${expected(kind)}`
  return describeMembers(kind, value, name)
}

export function describeLimit(exceeded: keyof JsonLimits, { members, depth }: JsonLimits, name = 'body'): string {
  return exceeded === 'members'
    ? `The ${name} has more than ${members} members.`
    : `The ${name} is nested deeper than ${depth} levels.`
}

function describeMembers(kind: BodyKind, value: Record<string, unknown>, body: string): string {
  const api = API[kind]
  const name = KEY_NAMES[api]
  if (value[name] === undefined) {
    const other = KEY_NAMES[api === 'v1' ? 'v2' : 'v1']
    return value[other] === undefined
      ? `The ${body} has no \`${name}\`. ${expected(kind)}`
      : `${api} expects \`${name}\`; got \`${other}\`.`
  }
  const issue = validateBody(kind, value).error?.issues[0]
  return issue === undefined ? `The ${body} is not a valid request.` : describeIssue(issue, value)
}

interface Issue {
  code?: string
  message: string
  path: PropertyKey[]
  expected?: unknown
}

/** Describes an issue of a schema, without the value. `value` is the validated body. */
export function describeIssue(issue: Issue, value: object): string {
  const at = issue.path.reduce<unknown>((inside, key) => memberOf(inside, key), value)
  return `\`${issue.path.join('.')}\` ${requirement(issue)}; got ${describe(at)}.`
}

function memberOf(value: unknown, key: PropertyKey): unknown {
  if (Array.isArray(value)) return value[Number(key)]
  return isObject(value) ? value[String(key)] : undefined
}

function requirement(issue: Issue): string {
  if (issue.code === 'invalid_type')
    return `must be ${issue.expected === 'array' ? 'an' : 'a'} ${String(issue.expected)}`
  if (issue.code === 'too_small') return 'must not be empty'
  return issue.message
}

function expected(kind: BodyKind): string {
  const name = KEY_NAMES[API[kind]]
  const members = kind === 'deactivate' ? `{"${name}": "...", "fingerprint": "..."}` : `{"${name}": "..."}`
  return `Send a JSON object such as ${members}.`
}

/** Returns the type of a value, and the length of a string, without its content. */
function describe(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object') return 'an object'
  if (typeof value !== 'string') return `a ${typeof value}`
  if (!value.isWellFormed()) return 'a string with a lone surrogate'
  return `a string of ${byteLength(value)} bytes`
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Returns whether the body is UTF-16: it begins with a UTF-16 byte order mark, or exactly one of its first two bytes is zero.
 */
function isUtf16(body: Uint8Array): boolean {
  const [first, second] = body
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)) return true
  return body.length > 1 && (first === 0) !== (second === 0)
}
