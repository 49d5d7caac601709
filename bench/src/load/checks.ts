// Turns licenses and a mix into the requests that a run sends. All that can be prepared is prepared before the clock starts;
// only a new machine's id is made while the load runs.
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
  /** Sent as `x-forwarded-for`; null: without that header. */
  forwardedFor: string | null
}

export type ApiVersion = 'v1' | 'v2'

/** Stands in a prepared body where a generator puts the number of a new machine; as long as the number itself. */
export const NEW_MACHINE_MARK = '{{machine-number}}'

export interface CheckOptions {
  targets: readonly Target[]
  mix: Mix
  length: number
  /** Machine ids that blacklist rules name; needed when the mix has `blacklisted`. */
  blacklistedMachines?: readonly string[]
  excludedMachines?: readonly string[]
  /** Addresses to send as `x-forwarded-for`, one after the other. */
  forwardedFor?: readonly string[]
}

/** `length` checks in the mix's order, walking through all targets and their machines. */
export function prepareChecks(options: CheckOptions): Check[] {
  const { targets, forwardedFor = [] } = options
  if (targets.length === 0) throw new Error('there is no license to check')
  // New machine ids differ from run to run too, else the second run would find the first one's machines known.
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

/** The JSON body of a check, as an app would send it. */
export function checkBody(check: Check, version: ApiVersion): string {
  return version === 'v2'
    ? JSON.stringify({ license: check.licenseKey, fingerprint: check.machineId })
    : JSON.stringify({ licenseKey: check.licenseKey, fingerprint: check.machineId })
}

export function checkPath(version: ApiVersion): string {
  return version === 'v2' ? '/api/v2/license/validate' : '/api/v1/validate'
}

export function checkHeaders(check: Check): Record<string, string> {
  return {
    authorization: `Bearer ${check.apiKey}`,
    'content-type': 'application/json',
    ...(check.forwardedFor === null ? {} : { 'x-forwarded-for': check.forwardedFor }),
  }
}

/** A fixed-width text, so that a prepared content-length stays right whatever the number. */
export function newMachineNumber(number: number): string {
  return number.toString(36).padStart(NEW_MACHINE_MARK.length, '0')
}

/** The whole HTTP/1.1 request. A new machine's body still holds the mark. */
export function rawRequest(check: Check, version: ApiVersion, host: string, path = checkPath(version)): Buffer {
  const body = checkBody(check, version)
  const headers = Object.entries({ host, ...checkHeaders(check), 'content-length': String(Buffer.byteLength(body)) })
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
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

// Of the shape that generated keys have, with letters that their alphabet leaves out: no such key can exist.
function unknownKey(index: number): string {
  const digits = index.toString(10).padStart(12, '0')
  return `O${digits.slice(0, 3)}-I${digits.slice(3, 6)}-O${digits.slice(6, 9)}-I${digits.slice(9, 12)}`
}

function pickFrom<T>(items: readonly T[], index: number): T {
  const item = items[index % items.length]
  if (item === undefined) throw new Error('the mix needs machine ids that were not given')
  return item
}
