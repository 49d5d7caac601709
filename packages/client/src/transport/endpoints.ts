// The four endpoints that the client calls, and what counts as an answer of each. A body that the service would never
// send is not an answer, whatever its status: a proxy or a network's login page sent it.

import { isObject, parseObject, readMessage } from '../json.ts'
import type { Settings } from '../options.ts'
import type { FileRefusalCode, RejectionCode } from '../results.ts'
import type { Endpoint } from './http.ts'

export type Verdict =
  | { valid: true; expiresAt: string | null }
  | { valid: false; code: RejectionCode; message: string; machines?: { used: number; max: number } }

/** The service's own file, or why it gives none. */
export type FileAnswer = { file: string } | { code: FileRefusalCode; message: string }

const REJECTION_CODES: readonly RejectionCode[] = [
  'NOT_FOUND',
  'BLACKLISTED',
  'REVOKED',
  'SUSPENDED',
  'EXPIRED',
  'FINGERPRINT_REQUIRED',
  'TOO_MANY_MACHINES',
]

export function validateEndpoint({ licenseKey, machineId }: Settings): Endpoint<Verdict> {
  const body = { license: licenseKey, fingerprint: machineId }
  return { path: 'api/v2/license/validate', body, statuses: [200, 400], read: readVerdict }
}

export function activateEndpoint({ licenseKey, machineId, hostname }: Settings): Endpoint<Verdict> {
  const body = { licenseKey, fingerprint: machineId, hostname }
  return { path: 'api/v1/activate', body, statuses: [200, 400], read: readVerdict }
}

export function deactivateEndpoint({ licenseKey, machineId }: Settings): Endpoint<{ deactivated: boolean }> {
  const body = { licenseKey, fingerprint: machineId }
  return { path: 'api/v1/deactivate', body, statuses: [200], read: readDeactivation }
}

export function fileEndpoint({ licenseKey, machineId }: Settings): Endpoint<FileAnswer> {
  const body = { licenseKey, fingerprint: machineId }
  return { path: 'api/v1/licenses/file', body, statuses: [200, 409], read: readFileAnswer }
}

/** A verdict of v1 or v2 (API document, Validation response). */
function readVerdict(status: number, text: string): Verdict | null {
  const body = parseObject(text)
  if (body === null) return null
  const { valid, code, expiresAt } = body
  if (valid === true && status === 200 && code === 'VALID') return isMoment(expiresAt) ? { valid, expiresAt } : null
  if (valid !== false || typeof code !== 'string' || code === 'VALID') return null
  const machines = readMachines(body['machines'])
  const refusal = {
    valid: false as const,
    code: rejectionCode(code),
    message: readMessage(body) ?? 'This check was refused.',
  }
  return machines === null ? refusal : { ...refusal, machines }
}

function readDeactivation(_status: number, text: string): { deactivated: boolean } | null {
  const deactivated = parseObject(text)?.['deactivated']
  return typeof deactivated === 'boolean' ? { deactivated } : null
}

function readFileAnswer(status: number, text: string): FileAnswer | null {
  if (status === 200) return { file: text }
  const body = parseObject(text)
  const code = body?.['code']
  if (body === null || typeof code !== 'string') return null
  return {
    code: code === 'MACHINE_NOT_ACTIVE' ? code : rejectionCode(code),
    message: readMessage(body) ?? 'This check was refused.',
  }
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
