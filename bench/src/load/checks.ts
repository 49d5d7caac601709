/**
 * Creates the requests of a run from licenses and a mix. The requests are prepared before the measurement starts, except the ids of new
 * machines.
 */

import { randomBytes } from 'node:crypto'

import { interleave, type CheckKind, type Mix } from './mix.ts'

/** A license to check and the machines that hold its slots. */
export interface Target {
  apiKey: string
  licenseKey: string
  machineIds: readonly string[]
}

export interface Check {
  kind: CheckKind
  apiKey: string
  licenseKey: string
  machineId: string
  /** The value of `x-forwarded-for`; null omits the header. */
  forwardedFor: string | null
  /** The id of the key under which the response is signed. Without it, the response has no signature. */
  kid?: string
  /** Further headers. */
  headers?: Readonly<Record<string, string>>
}

export type ApiVersion = 'v1' | 'v2'

/** The placeholder in a prepared body for the number of a new machine. It is as long as the number that replaces it. */
export const NEW_MACHINE_MARK = '{{machine-number}}'

interface CheckOptions {
  targets: readonly Target[]
  mix: Mix
  length: number
  /** The machine ids that blacklists match; required if the mix has `blacklisted`. */
  blacklistedMachines?: readonly string[]
  excludedMachines?: readonly string[]
  /** The addresses for `x-forwarded-for`, used in turn. */
  forwardedFor?: readonly string[]
}

/** Returns `length` checks in the order of the mix. The checks use all targets and their machines in turn. */
export function prepareChecks(options: CheckOptions): Check[] {
  const { targets, forwardedFor = [] } = options
  if (targets.length === 0) throw new Error('there are no licenses to check')
  // New machine ids differ between runs. Otherwise the new machines of the first run would be known in the second.
  const run = randomBytes(4).toString('hex')
  return interleave(options.mix, options.length).map((kind, index) => {
    const target = pickFrom(targets, index)
    const round = Math.floor(index / targets.length)
    return {
      kind,
      apiKey: target.apiKey,
      licenseKey: kind === 'unknown' ? unknownKey(index) : target.licenseKey,
      machineId: machineIdFor(kind, target, round, index, run, options),
      forwardedFor: forwardedFor.length === 0 ? null : pickFrom(forwardedFor, index),
    }
  })
}

/** Returns the JSON body of a check. */
export function checkBody(check: Check, version: ApiVersion): string {
  const { licenseKey, machineId: fingerprint, kid } = check
  const signed = kid === undefined ? {} : { nonce: randomBytes(16).toString('base64url'), kid }
  const key = version === 'v2' ? { license: licenseKey } : { licenseKey }
  return JSON.stringify({ ...key, fingerprint, ...signed })
}

export const BATCH_PATH = '/api/v2/license/validate/batch'

export function checkPath(version: ApiVersion): string {
  return version === 'v2' ? '/api/v2/license/validate' : '/api/v1/validate'
}

export function checkHeaders(check: Check): Record<string, string> {
  return {
    authorization: `Bearer ${check.apiKey}`,
    'content-type': 'application/json',
    ...(check.forwardedFor === null ? {} : { 'x-forwarded-for': check.forwardedFor }),
    ...check.headers,
  }
}

/** The headers that HTTP clients of apps and balancers add to those of `checkHeaders`. A request then has 12 headers. */
export const CLIENT_HEADERS: Readonly<Record<string, string>> = {
  accept: '*/*',
  'accept-encoding': 'gzip, deflate, br',
  'accept-language': 'en-US,en;q=0.9',
  connection: 'keep-alive',
  'user-agent': 'Editor/7.2 (Windows NT 10.0; Win64; x64)',
  'x-forwarded-host': 'licenses.example.com',
  'x-forwarded-proto': 'https',
  traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
}

let newMachines = 0

/** Replaces the placeholder with a machine number that this process has not used before. */
export function withNewMachine(text: string): string {
  newMachines += 1
  return text.replace(NEW_MACHINE_MARK, newMachines.toString(36).padStart(NEW_MACHINE_MARK.length, '0'))
}

/** Returns a function that returns the prepared requests in a cycle, with a new machine id in each check of a new machine. */
export function createSupply(checks: readonly Check[], version: ApiVersion, url: URL): () => Buffer | string {
  const requests = checks.map((check) => {
    const request = rawRequest(check, version, url.host)
    return check.kind === 'new' ? request.toString('latin1') : request
  })
  let next = 0
  return () => {
    const request = requests[next]!
    next = (next + 1) % requests.length
    return typeof request === 'string' ? withNewMachine(request) : request
  }
}

/** Returns the whole HTTP/1.1 request. The body of a check of a new machine still contains the placeholder. */
export function rawRequest(check: Check, version: ApiVersion, host: string): Buffer {
  return rawPost(host, checkPath(version), checkHeaders(check), checkBody(check, version))
}

/** Returns an HTTP/1.1 request with this body. */
export function rawPost(host: string, path: string, headers: Record<string, string>, body: string): Buffer {
  const all = Object.entries({ host, ...headers, 'content-length': String(Buffer.byteLength(body)) })
  const lines = all.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return Buffer.from(`POST ${path} HTTP/1.1\r\n${lines}\r\n${body}`)
}

function machineIdFor(
  kind: CheckKind,
  target: Target,
  round: number,
  index: number,
  run: string,
  options: CheckOptions,
): string {
  switch (kind) {
    case 'known':
      return pickFrom(target.machineIds, round)
    case 'unknown':
      return target.machineIds[0] ?? 'bench-machine'
    case 'new':
      return `bench-new-${run}-${index}-${NEW_MACHINE_MARK}`
    case 'blacklisted':
      return pickFrom(options.blacklistedMachines ?? [], index)
    case 'excluded':
      return pickFrom(options.excludedMachines ?? [], index)
    default:
      return kind satisfies never
  }
}

/** Returns a key in the form of generated keys, with letters that no generated key contains. */
function unknownKey(index: number): string {
  const digits = index.toString(10).padStart(12, '0')
  return `O${digits.slice(0, 3)}-I${digits.slice(3, 6)}-O${digits.slice(6, 9)}-I${digits.slice(9, 12)}`
}

function pickFrom<T>(items: readonly T[], index: number): T {
  const item = items[index % items.length]
  if (item === undefined) throw new Error('the mix needs machine ids, but none were given')
  return item
}
