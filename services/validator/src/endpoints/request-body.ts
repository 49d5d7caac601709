/**
 * What a request's body says, as bytes in buffers that are used again for every request. `readFields` is the obvious way
 * (decode, JSON.parse, the schemas of the public API); `scan.ts` is the fast way for plain bodies, and must say the same.
 */

import { maxLicenseKeyBytes, maxMachineIdBytes } from '@keyward/contract/text'
import { deactivateRequest, validateRequestV1, validateRequestV2 } from '@keyward/contract/validation'

/** Which body a request has: `deactivate` needs a machine id. */
export type BodyKind = 'v1' | 'v2' | 'deactivate'

/** The names are those of the engine's check, so that a check is filled in without copying. */
export interface Fields {
  licenseKey: Uint8Array
  /** Above maxLicenseKeyBytes: longer than any key can be, and the bytes are not there. */
  licenseKeyLength: number
  machineId: Uint8Array
  /** 0: none given. */
  machineIdLength: number
  hostname: string | null
}

export function createFields(): Fields {
  return {
    licenseKey: new Uint8Array(maxLicenseKeyBytes),
    licenseKeyLength: 0,
    machineId: new Uint8Array(maxMachineIdBytes),
    machineIdLength: 0,
    hostname: null,
  }
}

interface Parsed {
  licenseKey: string
  machineId: string | null
  hostname?: string | null
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const encoder = new TextEncoder()

function parse(kind: BodyKind, value: unknown): Parsed | undefined {
  switch (kind) {
    case 'v1':
      return validateRequestV1.safeParse(value).data
    case 'v2':
      return validateRequestV2.safeParse(value).data
    case 'deactivate':
      return deactivateRequest.safeParse(value).data
    default:
      return kind satisfies never
  }
}

/** Fills `out` from a JSON body; false when the body is malformed. */
export function readFields(kind: BodyKind, body: Uint8Array, out: Fields): boolean {
  let parsed: Parsed | undefined
  try {
    parsed = parse(kind, JSON.parse(decoder.decode(body)))
  } catch {
    return false
  }
  if (!parsed) return false
  const { licenseKey, machineId } = parsed
  out.licenseKeyLength = licenseKey.length
  if (licenseKey.length <= maxLicenseKeyBytes) {
    // A key that does not fit is longer than any key can be.
    const { read, written } = encoder.encodeInto(licenseKey, out.licenseKey)
    out.licenseKeyLength = read === licenseKey.length ? written : maxLicenseKeyBytes + 1
  }
  out.machineIdLength = machineId === null ? 0 : encoder.encodeInto(machineId, out.machineId).written
  out.hostname = parsed.hostname ?? null
  return true
}
