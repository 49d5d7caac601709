/**
 * Verifies signed responses (docs/api.md#g5). A key of the organization delegates to the key of a validator, which signs the root of a tree
 * of responses. Invariant: `ok` is returned only for the response to exactly this request.
 */

import { decodeBase64Url, encodeBase64Url } from './base64.ts'
import { sha256, utf8 } from './hash.ts'
import type { VerificationKey } from './keys.ts'
import { CLOCK_TOLERANCE_MS } from './validity.ts'
import { isSignedBy } from './verify.ts'

/** A response and its request. */
export interface Answer {
  /** The value of the header `keyward-signature`, or null without the header. */
  signature: string | null
  /** The path in the API, such as `/api/v2/license/validate`, without the path of the base URL. */
  path: string
  status: number
  apiKey: string
  /** The body of the request, in which `kid` names `key`. */
  request: Uint8Array
  response: Uint8Array
  /** The public key, which the app contains. */
  key: VerificationKey
  /** The latest time of an earlier signed response, in milliseconds since 1970, or 0. */
  latestSignedMs: number
}

/**
 * The reason why a response is not trusted. `UNSIGNED`: it has no signature. `MALFORMED`: the signature does not have the documented form.
 * `BAD_DELEGATION`: the key did not sign the delegation. `DELEGATION_EXPIRED`: the time is outside of the delegation. `BAD_SIGNATURE`: the
 * validator's key did not sign the statement. `OTHER_ANSWER`: the statement is about other requests or responses. `BACK_DATED`: the time is
 * more than CLOCK_TOLERANCE_MS before an earlier one.
 */
export type AnswerProblem =
  | 'UNSIGNED'
  | 'MALFORMED'
  | 'BAD_DELEGATION'
  | 'DELEGATION_EXPIRED'
  | 'BAD_SIGNATURE'
  | 'OTHER_ANSWER'
  | 'BACK_DATED'

export type AnswerVerification = { ok: true; timeMs: number } | { ok: false; reason: AnswerProblem }

const HASH_BYTES = 32
const STEP_BYTES = 1 + HASH_BYTES
/** The maximum length of the header in characters. It bounds the cost of hostile input. */
const MAX_SIGNATURE_LENGTH = 4 * 1024
const TIME = String.raw`(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)`
const DELEGATION = new RegExp(String.raw`^keyward-delegation-v1 ([\w-]+) ${TIME} ${TIME} ([\w-]{43})$`)
const STATEMENT = new RegExp(String.raw`^keyward-answers-v1 ${TIME} ([\w-]{43})$`)

/** Verifies a response. Never throws, even for a malformed signature. */
export async function verifyAnswer(answer: Answer): Promise<AnswerVerification> {
  const { signature, key, latestSignedMs } = answer
  if (signature === null) return problem('UNSIGNED')
  const parts = signature.length > MAX_SIGNATURE_LENGTH ? [] : signature.split('.').map(decodeBase64Url)
  const [delegation, delegated, statement, signed, path] = parts
  if (!delegation || !delegated || !statement || !signed || !path || parts.length !== 5) return problem('MALFORMED')
  const [, kid, notBefore = '', notAfter = '', validatorText = ''] = DELEGATION.exec(textOf(delegation)) ?? []
  if (kid !== key.keyId || !isSignedBy(key.publicKey, delegation, delegated)) return problem('BAD_DELEGATION')
  const validatorKey = decodeBase64Url(validatorText)
  const [, time = '', root] = STATEMENT.exec(textOf(statement)) ?? []
  if (validatorKey === null || root === undefined || !isSignedBy(validatorKey, statement, signed))
    return problem('BAD_SIGNATURE')
  // Times of this form have the order of their texts.
  if (!(notBefore <= time && time < notAfter)) return problem('DELEGATION_EXPIRED')
  const top = await climb(await leafOf(answer), path)
  if (top === null || encodeBase64Url(top) !== root) return problem('OTHER_ANSWER')
  const timeMs = Date.parse(time)
  return timeMs < latestSignedMs - CLOCK_TOLERANCE_MS ? problem('BACK_DATED') : { ok: true, timeMs }
}

function problem(reason: AnswerProblem): AnswerVerification {
  return { ok: false, reason }
}

/** Returns the bytes as characters. A text of ASCII stays unchanged, and no other text has the form of a delegation or statement. */
function textOf(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes)
}

async function leafOf({ path, status, apiKey, request, response }: Answer): Promise<Uint8Array> {
  const hashes = [await sha256(utf8(apiKey)), await sha256(request), await sha256(response)].map(encodeBase64Url)
  return sha256(utf8(`keyward-answer-v1 ${path} ${status} ${hashes.join(' ')}`))
}

/** Returns the root to which the path leads from a leaf, or null for a malformed path. */
async function climb(leaf: Uint8Array, path: Uint8Array): Promise<Uint8Array | null> {
  if (path.length % STEP_BYTES !== 0) return null
  let node = leaf
  for (let at = 0; at < path.length; at += STEP_BYTES) {
    const neighbour = path.subarray(at + 1, at + STEP_BYTES)
    const side = path[at]
    if (side !== 0 && side !== 1) return null
    node = await sha256(Uint8Array.of(1, ...(side === 0 ? [...node, ...neighbour] : [...neighbour, ...node])))
  }
  return node
}
