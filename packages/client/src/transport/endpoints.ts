/**
 * The endpoints that the client calls, and the parsers of their responses. A body in an unexpected format counts as an outage, because
 * another program sent it, such as a proxy or a captive portal.
 */

import { readEntitlements } from '@keyward/license-file'

import { isObject, parseObject, readMessage } from '../json.ts'
import type { Settings } from '../options.ts'
import {
  type Entitlements,
  type FileRefusalCode,
  type Machine,
  REJECTION_CODES,
  type RejectionCode,
} from '../results.ts'
import type { Endpoint } from './http.ts'

export type Verdict =
  | { valid: true; expiresAt: string | null; graceEndsAt?: string; entitlements?: Entitlements }
  | { valid: false; code: RejectionCode; message: string; machines?: { used: number; max: number } }

/** The machines of a license, or the reason why the service lists none. */
type MachinesResponse =
  | { machines: { used: number; max: number | null }; releasesLeft: number | null; list: Machine[] }
  | { code: RejectionCode | 'NOT_ENABLED'; message: string }

/** Whether a slot was released, or the reason why the service releases none by ref. */
type Deactivation = { deactivated: boolean } | { code: 'NOT_ENABLED'; message: string }

/** A license file, or the reason why the service issues none. */
type FileResponse = { file: string } | { code: FileRefusalCode; message: string }

const DEFAULT_MESSAGE = 'The check was rejected.'

// The form of all codes of the service. A body with a code of another form comes from another program.
const CODE = /^[A-Z][A-Z0-9_]{1,63}$/

export function validateEndpoint({ licenseKey, machineId, entitlements }: Settings): Endpoint<Verdict> {
  const body = { license: licenseKey, fingerprint: machineId, include: included(entitlements) }
  const read = withEntitlements(readVerdictV2, entitlements)
  return { path: 'api/v2/license/validate', isSigned: true, body, statuses: [200, 400], read }
}

export function activateEndpoint({ licenseKey, machineId, hostname, entitlements }: Settings): Endpoint<Verdict> {
  const body = { licenseKey, fingerprint: machineId, hostname, include: included(entitlements) }
  const read = withEntitlements(readVerdict, entitlements)
  return { path: 'api/v1/activate', isSigned: true, body, statuses: [200, 400], read }
}

function included(entitlements: boolean): readonly string[] | undefined {
  return entitlements ? ['entitlements'] : undefined
}

type ReadVerdict = (status: number, text: string) => Verdict | null

/** Adds the entitlements to a valid verdict. Services of earlier versions send none. */
function withEntitlements(read: ReadVerdict, isWanted: boolean): ReadVerdict {
  if (!isWanted) return read
  return (status, text) => {
    const verdict = read(status, text)
    if (verdict === null || !verdict.valid) return verdict
    const unlocked = readEntitlements(parseObject(text)?.['entitlements'] ?? {})
    return unlocked && { ...verdict, entitlements: unlocked }
  }
}

const DEACTIVATE = { path: 'api/v1/deactivate', isSigned: true, statuses: [200, 403], read: readDeactivation }

export function deactivateEndpoint({ licenseKey, machineId }: Settings): Endpoint<Deactivation> {
  return { ...DEACTIVATE, body: { licenseKey, fingerprint: machineId } }
}

export function releaseEndpoint({ licenseKey }: Settings, ref: string): Endpoint<Deactivation> {
  return { ...DEACTIVATE, body: { licenseKey, ref } }
}

export function machinesEndpoint({ licenseKey, machineId }: Settings): Endpoint<MachinesResponse> {
  const body = { licenseKey, fingerprint: machineId }
  return { path: 'api/v1/machines', isSigned: false, body, statuses: [200, 403, 409], read: readMachinesResponse }
}

export function fileEndpoint({ licenseKey, machineId }: Settings): Endpoint<FileResponse> {
  const body = { licenseKey, fingerprint: machineId }
  return { path: 'api/v1/licenses/file', isSigned: false, body, statuses: [200, 409], read: readFileResponse }
}

/** Parses a verdict of v2: 200 for VALID, 400 for a rejection, with the same status in the body (docs/api.md#h1). */
function readVerdictV2(status: number, text: string): Verdict | null {
  const verdict = readVerdict(status, text)
  const { status: statusInBody = status } = parseObject(text) ?? {}
  return verdict?.valid === (status === 200) && statusInBody === status ? verdict : null
}

/** Parses the fields that the verdicts of v1 and v2 have in common. Returns null for any other text. */
function readVerdict(status: number, text: string): Verdict | null {
  const body = parseObject(text)
  if (body === null) return null
  const { valid, code, expiresAt, graceEndsAt } = body
  if (valid === true && status === 200 && code === 'VALID') {
    if (!isMoment(expiresAt)) return null
    return { valid, expiresAt, ...(typeof graceEndsAt === 'string' && isMoment(graceEndsAt) && { graceEndsAt }) }
  }
  if (valid !== false || typeof code !== 'string' || code === 'VALID' || !CODE.test(code)) return null
  const machines = readMachines(body['machines'])
  const rejection = {
    valid: false as const,
    code: rejectionCode(code),
    message: readMessage(body) ?? DEFAULT_MESSAGE,
  }
  return machines === null ? rejection : { ...rejection, machines }
}

function readDeactivation(status: number, text: string): Deactivation | null {
  const body = parseObject(text) ?? {}
  const { code, deactivated } = body
  if (status !== 200) return code === 'NOT_ENABLED' ? { code, message: readMessage(body) ?? DEFAULT_MESSAGE } : null
  return typeof deactivated === 'boolean' ? { deactivated } : null
}

function readFileResponse(status: number, text: string): FileResponse | null {
  if (status === 200) return { file: text }
  const body = parseObject(text)
  const code = body?.['code']
  if (body === null || typeof code !== 'string') return null
  return {
    code: code === 'MACHINE_NOT_ACTIVE' || code === 'NOT_STARTED' ? code : rejectionCode(code),
    message: readMessage(body) ?? DEFAULT_MESSAGE,
  }
}

function readMachinesResponse(status: number, text: string): MachinesResponse | null {
  const body = parseObject(text)
  if (body === null) return null
  const { code, used, max, releasesLeft, machines: list } = body
  if (status !== 200)
    return typeof code !== 'string'
      ? null
      : {
          code: code === 'NOT_ENABLED' ? code : rejectionCode(code),
          message: readMessage(body) ?? DEFAULT_MESSAGE,
        }
  const isList = Array.isArray(list) && list.every(isMachine)
  if (!isList || typeof used !== 'number' || !isCount(max) || !isCount(releasesLeft)) return null
  return { machines: { used, max }, releasesLeft, list }
}

function isCount(value: unknown): value is number | null {
  return value === null || typeof value === 'number'
}

function isMachine(value: unknown): value is Machine {
  if (!isObject(value)) return false
  const { ref, hostname, lastSeenAt, current } = value
  const isNamed = hostname === null || typeof hostname === 'string'
  return typeof ref === 'string' && isNamed && typeof lastSeenAt === 'string' && typeof current === 'boolean'
}

function rejectionCode(code: string): RejectionCode {
  return REJECTION_CODES.find((known) => known === code) ?? 'REJECTED'
}

function readMachines(value: unknown): { used: number; max: number } | null {
  if (!isObject(value)) return null
  const { used, max } = value
  return typeof used === 'number' && typeof max === 'number' ? { used, max } : null
}

function isMoment(value: unknown): value is string | null {
  return value === null || (typeof value === 'string' && !Number.isNaN(Date.parse(value)))
}
