/**
 * Generates the test vectors of signed responses (docs/api.md#g5): requests, responses, signatures and expected outcomes. OpenSSL creates
 * the signatures, and Node's `crypto` the hashes, so no code of this package is involved. Every run generates the same vectors.
 */

import { createHash } from 'node:crypto'

import { opensslPublicKey, opensslSign } from './openssl.ts'

/** One case: the expected outcome of the verification with the key `keyId`. */
export interface AnswerVector {
  name: string
  signature: string | null
  path: string
  status: number
  apiKey: string
  request: string
  response: string
  keyId: string
  publicKey: string
  latestSigned: string | null
  expected: string
}

const SEEDS = { vendor: Buffer.alloc(32, 1), stranger: Buffer.alloc(32, 3), validator: Buffer.alloc(32, 4) }
type Signer = keyof typeof SEEDS

const keyOf = (signer: Signer): Buffer => opensslPublicKey(SEEDS[signer])
const KEY = keyOf('vendor')
const KEY_ID = KEY.subarray(12, 20).toString('hex')
const VALIDATOR = keyOf('validator').subarray(12).toString('base64url')
const NOT_BEFORE = '2026-03-10T00:00:00.000Z'
const NOT_AFTER = '2026-03-12T00:00:00.000Z'
const TIME = '2026-03-10T12:00:00.000Z'

const ANSWER = {
  path: '/api/v2/license/validate',
  status: 200,
  apiKey: 'kwk_test',
  request: `{"license":"K7QX-93FM-TTRW-H2ZD","fingerprint":"m-1","nonce":"c2lnbmVkIGFuc3dlcnM-_w","kid":"${KEY_ID}"}`,
  response:
    '{"valid":true,"status":200,"message":"The license is valid. – ü","code":"VALID","expiresAt":null,"entitlements":{"seats":5}}',
}

interface Parts {
  delegation: string
  delegatedBy: Signer
  time: string
  statement: (time: string, root: string) => string
  statedBy: Signer
  steps: Buffer
}

const PARTS: Parts = {
  delegation: `keyward-delegation-v1 ${KEY_ID} ${NOT_BEFORE} ${NOT_AFTER} ${VALIDATOR}`,
  delegatedBy: 'vendor',
  time: TIME,
  statement: (time, root) => `keyward-answers-v1 ${time} ${root}`,
  statedBy: 'validator',
  steps: Buffer.alloc(0),
}

/** A path with neighbours on both sides. */
const PATH = Buffer.concat([
  Buffer.from([0]),
  Buffer.alloc(32, 5),
  Buffer.from([1]),
  Buffer.alloc(32, 6),
  Buffer.from([1]),
  Buffer.alloc(32, 7),
])

/** Returns the content of vectors/signed-answers.json. */
export function makeAnswerVectors(): { cases: AnswerVector[] } {
  const good = signatureOf(ANSWER)
  const parts = good.split('.')
  const inTree = signatureOf(ANSWER, { steps: PATH })
  const treeParts = inTree.split('.')
  const path = (bytes: Buffer) => [...treeParts.slice(0, 4), bytes.toString('base64url')].join('.')
  const file = `{"licenseKey":"K7QX-93FM-TTRW-H2ZD","kid":"${KEY_ID}"}`
  const at = (time: string) => signatureOf(ANSWER, { time })
  const later = (latestSigned: string) => ({ latestSigned })
  return {
    cases: [
      vector('a response alone', good, 'GOOD'),
      vector('a response among others', inTree, 'GOOD'),
      vector('a rejection', signatureOf({ ...ANSWER, status: 400 }), 'GOOD', { status: 400 }),
      vector('at notBefore', at(NOT_BEFORE), 'GOOD'),
      vector('one millisecond before notAfter', at('2026-03-11T23:59:59.999Z'), 'GOOD'),
      vector('5 minutes before an earlier response', good, 'GOOD', later('2026-03-10T12:05:00.000Z')),
      vector('further before an earlier response', good, 'BACK_DATED', later('2026-03-10T12:05:00.001Z')),
      vector('at notAfter', at(NOT_AFTER), 'DELEGATION_EXPIRED'),
      vector('before notBefore', at('2026-03-09T23:59:59.999Z'), 'DELEGATION_EXPIRED'),
      vector('no signature', null, 'UNSIGNED'),
      vector('an empty signature', '', 'MALFORMED'),
      vector('a truncated signature', good.slice(0, 300), 'MALFORMED'),
      vector('four parts', parts.slice(0, 4).join('.'), 'MALFORMED'),
      vector('six parts', `${good}.`, 'MALFORMED'),
      vector('padded', `${parts.slice(0, 3).join('.')}.${parts[3] ?? ''}==.`, 'MALFORMED'),
      vector('a line break', `${good}\n`, 'MALFORMED'),
      vector('more than 4,096 characters', path(Buffer.alloc(33 * 100)), 'MALFORMED'),
      vector('a delegation by another key', signatureOf(ANSWER, { delegatedBy: 'stranger' }), 'BAD_DELEGATION'),
      vector(
        'a delegation with another kid',
        signatureOf(ANSWER, { delegation: PARTS.delegation.replace(KEY_ID, '0000000000000000') }),
        'BAD_DELEGATION',
      ),
      vector('a file as the delegation', signatureOf(ANSWER, { delegation: file }), 'BAD_DELEGATION'),
      vector(
        'a statement as the delegation',
        signatureOf(ANSWER, { delegation: PARTS.statement(TIME, VALIDATOR) }),
        'BAD_DELEGATION',
      ),
      vector(
        'a time without milliseconds in the delegation',
        signatureOf(ANSWER, { delegation: PARTS.delegation.replace('.000Z', 'Z') }),
        'BAD_DELEGATION',
      ),
      vector(
        'a line break after the delegation',
        signatureOf(ANSWER, { delegation: `${PARTS.delegation}\n` }),
        'BAD_DELEGATION',
      ),
      vector('a statement by another key', signatureOf(ANSWER, { statedBy: 'stranger' }), 'BAD_SIGNATURE'),
      vector('a statement by the signing key itself', signatureOf(ANSWER, { statedBy: 'vendor' }), 'BAD_SIGNATURE'),
      vector(
        'a delegation as the statement',
        [...parts.slice(0, 2), ...parts.slice(0, 2), ''].join('.'),
        'BAD_SIGNATURE',
      ),
      vector(
        'another first word',
        signatureOf(ANSWER, { statement: (time, root) => `keyward-answers-v2 ${time} ${root}` }),
        'BAD_SIGNATURE',
      ),
      ...aboutOthers(good, path),
    ],
  }
}

/** The cases in which the signature is about another request or response. */
function aboutOthers(good: string, path: (steps: Buffer) => string): AnswerVector[] {
  return [
    vector('another request', good, 'OTHER_ANSWER', { request: ANSWER.request.replace('m-1', 'm-2') }),
    vector('another API key', good, 'OTHER_ANSWER', { apiKey: 'kwk_other' }),
    vector('another path of the URL', good, 'OTHER_ANSWER', { path: '/api/v1/validate' }),
    vector('another status', good, 'OTHER_ANSWER', { status: 400 }),
    vector('another entitlement', good, 'OTHER_ANSWER', { response: ANSWER.response.replace('5', '6') }),
    vector('the path of another response', path(PATH.subarray(0, 33)), 'OTHER_ANSWER'),
    vector('a reordered path', path(Buffer.concat([PATH.subarray(33), PATH.subarray(0, 33)])), 'OTHER_ANSWER'),
    vector('a path with half a step', path(PATH.subarray(0, 50)), 'OTHER_ANSWER'),
    vector('a path with an unknown side', path(Buffer.concat([Buffer.from([2]), PATH.subarray(1)])), 'OTHER_ANSWER'),
  ]
}

function vector(name: string, signature: string | null, expected: string, given: Partial<AnswerVector> = {}) {
  const publicKey = KEY.toString('base64')
  return { name, signature, ...ANSWER, keyId: KEY_ID, publicKey, latestSigned: null, ...given, expected }
}

function signatureOf(answer: typeof ANSWER, given: Partial<Parts> = {}): string {
  const { delegation, delegatedBy, time, statement, statedBy, steps } = { ...PARTS, ...given }
  const { path, status, apiKey, request, response } = answer
  const hashes = [apiKey, request, response].map((each) => sha256(Buffer.from(each)).toString('base64url'))
  let node = sha256(Buffer.from(`keyward-answer-v1 ${path} ${status} ${hashes.join(' ')}`))
  for (let at = 0; at < steps.length; at += 33) {
    const neighbour = steps.subarray(at + 1, at + 33)
    node = sha256(Buffer.concat([Buffer.from([1]), ...(steps[at] === 0 ? [node, neighbour] : [neighbour, node])]))
  }
  const texts = [signed(delegation, delegatedBy), signed(statement(time, node.toString('base64url')), statedBy)]
  return `${texts.join('.')}.${steps.toString('base64url')}`
}

function signed(text: string, by: Signer): string {
  const bytes = Buffer.from(text)
  return `${bytes.toString('base64url')}.${opensslSign(bytes, SEEDS[by]).toString('base64url')}`
}

function sha256(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes).digest()
}
