/** The cases of signed responses: each attack on a client that requires signatures counts as an outage, so the stored file decides. */

import { generateKeyPair } from '@keyward/license-file'

import type { Forgery, SignedFacts } from '../service/answers.ts'
import { NO_FILE, OFFLINE_VALID, offlineRejection, ONLINE_VALID, requireEqual, type World } from '../world.ts'
import { DAY_MS, getFile, MINUTE_MS, restartOffline, restartOnline, type Scenario } from './scenario.ts'

const REQUIRED = { requireSignature: true }
const HOUR_MS = 60 * MINUTE_MS
const REVOKED = { source: 'online', valid: false, code: 'REVOKED' }

/** Returns a case in which a forged `VALID` must not be accepted. `prepare` returns the forgery. */
function rejects(name: string, prepare: (world: World) => Forgery): Scenario {
  return {
    name: `rejects ${name}`,
    async run(world) {
      world.service.answers.forgery = prepare(world)
      await world.open({ ...REQUIRED, entitlements: true })
      await world.requireResult('validate', NO_FILE)
      await world.requireResult('activate', NO_FILE)
      world.service.answers.forgery = {}
      await world.requireResult('validate', ONLINE_VALID)
    },
  }
}

/** Returns a forgery that signs something else than this request and this response. */
function about(change: (facts: SignedFacts) => Partial<SignedFacts>): () => Forgery {
  return () => ({ facts: (facts) => ({ ...facts, ...change(facts) }) })
}

function otherNonce({ request }: SignedFacts): Partial<SignedFacts> {
  const other = (_: string, before: string, first: string): string => `${before}${first === 'A' ? 'B' : 'A'}`
  return { request: request.replace(/("nonce":\s*")(.)/, other) }
}

const replaced =
  (field: 'request' | 'response', from: RegExp, to: string) =>
  (facts: SignedFacts): Partial<SignedFacts> => {
    const text = facts[field].replace(from, to)
    if (text === facts[field]) throw new Error(`The ${field} does not contain ${String(from)}.`)
    return { [field]: text }
  }

/** Returns the delegation and its signature, or any other parts, of a genuine header. */
const partsOf = (header: string, from: number, to: number): string => header.split('.').slice(from, to).join('.')

const forgeries: readonly Scenario[] = [
  rejects('a response without a signature', () => ({ header: () => null })),
  rejects('an empty signature', () => ({ header: () => '' })),
  rejects('a truncated signature', () => ({ header: (header) => header.slice(0, 300) })),
  rejects('a sixth part', () => ({ header: (header) => `${header}.AA` })),
  rejects('a delegation by a key that the app does not contain', () => {
    const stranger = generateKeyPair()
    return { delegatedBy: stranger, kid: stranger.keyId }
  }),
  rejects("a delegation by another key with the app's kid", () => ({ delegatedBy: generateKeyPair() })),
  rejects('a statement by a key without a delegation', () => ({ statedBy: generateKeyPair() })),
  rejects('a statement by the signing key itself', ({ service }) => ({ statedBy: service.signer })),
  rejects('an expired delegation', () => ({ notBeforeMs: -3 * DAY_MS, notAfterMs: -DAY_MS })),
  rejects('a delegation that has not begun', () => ({ notBeforeMs: HOUR_MS, notAfterMs: DAY_MS })),
  rejects('a license file as the delegation', ({ service }) => ({
    delegation: `{"licenseKey":"${service.licenseKey}","kid":"${service.signer.keyId}"}`,
  })),
  rejects('a statement as the delegation', () => ({
    header: (header) => [partsOf(header, 2, 4), partsOf(header, 2, 5)].join('.'),
  })),
  rejects('a delegation as the statement', () => ({
    header: (header) => [partsOf(header, 0, 2), partsOf(header, 0, 2), partsOf(header, 4, 5)].join('.'),
  })),
  rejects('a reordered path', () => ({ path: (steps) => steps.toReversed() })),
  rejects('a path with a step too few', () => ({ path: (steps) => steps.slice(1) })),
  rejects('a path with half a step', () => ({ path: (steps) => [...steps, Buffer.alloc(16)] })),
  rejects('a signature for another nonce', about(otherNonce)),
  rejects('a signature for another machine', about(replaced('request', /machine-1/, 'machine-2'))),
  rejects('a signature for another license key', about(replaced('request', /K7QX/, 'K7QY'))),
  rejects(
    'a signature for another API key, such as that of another product',
    about(() => ({ apiKey: 'kwk_cheap' })),
  ),
  rejects(
    'a signature for another endpoint',
    about(() => ({ path: '/api/v1/deactivate' })),
  ),
  rejects(
    'a signature for another status',
    about(() => ({ status: 409 })),
  ),
  rejects('a signature for another code', about(replaced('response', /VALID/, 'REVOKED'))),
  rejects('a signature for other entitlements', about(replaced('response', /"edition":"pro"/, '"edition":"free"'))),
  rejects('a signature for another expiry', about(replaced('response', /"expiresAt":"20/, '"expiresAt":"21'))),
]

const others: readonly Scenario[] = [
  {
    name: 'accepts signed verdicts, rejections and deactivations, with paths of 0 to 6 steps',
    async run(world) {
      await world.open(REQUIRED)
      for (let steps = 0; steps <= 6; steps++) {
        world.service.answers.forgery = { steps }
        await world.requireResult('validate', ONLINE_VALID)
      }
      await world.requireResult('activate', ONLINE_VALID)
      world.service.license.rejectedAs = 'REVOKED'
      await world.requireResult('validate', REVOKED)
      world.service.license.rejectedAs = null
      await world.requireResult('deactivate', { deactivated: true, code: 'DEACTIVATED' })
    },
  },
  {
    name: 'ignores an unsigned rejection, and the file decides',
    async run(world) {
      await getFile(world, REQUIRED)
      world.service.license.rejectedAs = 'REVOKED'
      world.service.answers.forgery = { header: () => null }
      await world.requireResult('validate', OFFLINE_VALID)
      await world.requireResult('activate', OFFLINE_VALID)
      world.service.answers.forgery = {}
      await world.requireResult('validate', REVOKED)
    },
  },
  {
    name: 'ignores unsigned errors, and the file decides',
    async run(world) {
      await getFile(world, REQUIRED)
      for (const status of [401, 403, 404, 422, 429]) {
        world.gateway.fault = { kind: 'respond', status, body: '{"code":"UNAUTHORIZED","detail":"No such API key."}' }
        await world.requireResult('validate', OFFLINE_VALID)
      }
      await world.requireResult('deactivate', { deactivated: false, code: 'UNREACHABLE' })
    },
  },
  {
    name: 'rejects a deactivation without a signature, and keeps the file',
    async run(world) {
      await getFile(world, REQUIRED)
      world.service.answers.forgery = { header: () => null }
      await world.requireResult('deactivate', { deactivated: false, code: 'UNREACHABLE' })
      await restartOffline(world, REQUIRED)
      await world.requireResult('validate', OFFLINE_VALID)
    },
  },
  {
    name: 'rejects a replayed response',
    async run(world) {
      await getFile(world, REQUIRED)
      await world.requireResult('validate', ONLINE_VALID)
      const { status, headers, body } = world.service.lastAnswer
      requireEqual('the status of the recorded response', status, 200)
      world.service.license.rejectedAs = 'REVOKED'
      await world.requireResult('validate', REVOKED)
      world.gateway.fault = { kind: 'respond', status, headers, body }
      await world.requireResult('validate', { ...NO_FILE, rejectedAs: 'REVOKED' })
    },
  },
  {
    name: 'rejects a replayed deactivation, and keeps the file',
    async run(world) {
      await getFile(world, REQUIRED)
      await world.requireResult('deactivate', { deactivated: true, code: 'DEACTIVATED' })
      const { status, headers, body } = world.service.lastAnswer
      await getFile(world, REQUIRED)
      world.gateway.fault = { kind: 'respond', status, headers, body }
      await world.requireResult('deactivate', { deactivated: false, code: 'UNREACHABLE' })
      await restartOffline(world, REQUIRED)
      await world.requireResult('validate', OFFLINE_VALID)
    },
  },
  {
    name: 'rejects a stolen key after the end of its delegation, also with a time within the delegation',
    async run(world) {
      await getFile(world, REQUIRED)
      const ended = { notBeforeMs: -3 * DAY_MS, notAfterMs: -DAY_MS }
      world.service.answers.forgery = ended
      await world.requireResult('validate', OFFLINE_VALID)
      world.service.answers.forgery = { ...ended, timeMs: -2 * DAY_MS }
      await world.requireResult('validate', OFFLINE_VALID)
      await world.requireResult('activate', OFFLINE_VALID)
    },
  },
  {
    name: 'rejects a delegation that is offered as a license file',
    async run(world) {
      await world.open(REQUIRED)
      await world.requireResult('validate', ONLINE_VALID)
      const header = world.service.lastAnswer.headers['keyward-signature'] ?? ''
      world.service.fileText = partsOf(header, 0, 2)
      const other = { ...REQUIRED, storage: `${world.storage}.other` }
      await world.open(other)
      await world.requireResult('validate', ONLINE_VALID)
      await world.requireImport(world.service.fileText, { imported: false, reason: 'BAD_SIGNATURE' })
      await restartOffline(world, other)
      await world.requireResult('validate', NO_FILE)
    },
  },
  {
    name: 'rejects a time more than 5 minutes before that of an earlier response, even after a restart',
    async run(world) {
      await getFile(world, REQUIRED)
      world.service.answers.forgery = { timeMs: -4 * MINUTE_MS }
      await world.requireResult('validate', ONLINE_VALID)
      world.service.answers.forgery = { timeMs: -6 * MINUTE_MS }
      await world.requireResult('validate', OFFLINE_VALID)
      await world.open(REQUIRED)
      await world.requireResult('validate', OFFLINE_VALID)
    },
  },
  {
    name: 'takes the latest time seen from the signature, not from the header `Date`',
    async run(world) {
      await getFile(world, REQUIRED)
      world.service.date = new Date(Date.now() - 10 * DAY_MS).toUTCString()
      await world.requireResult('validate', ONLINE_VALID)
      await restartOffline(world, { ...REQUIRED, clockAheadMs: -HOUR_MS })
      await world.requireResult('validate', offlineRejection('CLOCK_SET_BACK'))
      world.gateway.fault = { kind: 'none' }
      world.service.date = new Date(Date.now() + 10 * DAY_MS).toUTCString()
      await world.open(REQUIRED)
      await world.requireResult('validate', ONLINE_VALID)
      await restartOffline(world, REQUIRED)
      await world.requireResult('validate', OFFLINE_VALID)
    },
  },
  {
    name: 'rejects the `Date` of a fake server that confirms a clock which was set back',
    async run(world) {
      await getFile(world, REQUIRED)
      await restartOffline(world, { ...REQUIRED, clockAheadMs: 40 * DAY_MS })
      await world.requireResult('validate', offlineRejection('REFRESH_NEEDED'))
      world.service.answers.forgery = { header: () => null }
      world.service.date = new Date(Date.now() + DAY_MS).toUTCString()
      await restartOnline(world, { ...REQUIRED, clockAheadMs: DAY_MS })
      await world.requireResult('validate', offlineRejection('CLOCK_SET_BACK'))
      await world.requireResult('activate', offlineRejection('CLOCK_SET_BACK'))
    },
  },
  {
    name: 'never repeats a request without a nonce, even if an error demands it',
    async run(world) {
      await getFile(world, REQUIRED)
      world.service.answers.forgery = { header: () => null }
      for (const status of [400, 415, 422, 501]) {
        const body =
          '{"valid":false,"code":"INVALID_REQUEST","message":"`nonce` is not supported.","detail":"Omit `nonce`."}'
        world.gateway.next = [{ kind: 'respond', status, body }]
        await world.requireResult('validate', OFFLINE_VALID)
        await world.requireResult('activate', OFFLINE_VALID)
      }
    },
  },
  {
    name: 'tries the next public key when the service does not sign under the first one',
    async run(world) {
      const { keyId, publicKey } = world.service.withdrawnKey
      await world.open({ ...REQUIRED, publicKeys: [{ keyId, publicKey }, ...world.service.publicKeys] })
      await world.requireResult('validate', ONLINE_VALID)
    },
  },
  {
    name: 'sends no nonce without the option',
    async run(world) {
      await getFile(world)
      requireEqual('the signature', world.service.lastAnswer.headers['keyward-signature'], undefined)
    },
  },
]

export const signedScenarios: readonly Scenario[] = [...others, ...forgeries]
