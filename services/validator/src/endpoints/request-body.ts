/**
 * Reads the fields of a request's body (docs/api.md#h3) as bytes, into buffers that all requests reuse. `parseBody` is the
 * reference implementation, with JSON.parse and the schemas of the public API. `request-body-fast-path.ts` reads common
 * bodies faster and must return the same result.
 */

import { MAX_LICENSE_KEY_BYTES, MAX_MACHINE_ID_BYTES } from '@keyward/contract/text'
import { deactivateRequest, validateRequestV1, validateRequestV2 } from '@keyward/contract/validation'
import { exceededLimit, type JsonLimits } from '@keyward/runtime/json-scan'
import type { z } from 'zod'

/** The kinds of request bodies. `deactivate` requires a machine id or a ref. */
export type BodyKind = 'validateV1' | 'validateV2' | 'deactivate'

/** The fields of a body. The engine's `Check` uses the same names, so the parser can fill a check directly. */
export interface RequestBody {
  licenseKey: Uint8Array
  /** The length of the license key in bytes. If it exceeds MAX_LICENSE_KEY_BYTES, no license has this key, and the bytes are undefined. */
  licenseKeyLength: number
  machineId: Uint8Array
  /** The length of the machine id in bytes, or 0 without a machine id. */
  machineIdLength: number
  /** The ref of a machine, if the body names it so and has no machine id (docs/api.md#u2). */
  ref: string | null
  hostname: string | null
  /** Whether `include` names the entitlements (docs/api.md#h12). */
  wantsEntitlements: boolean
  /** The id of the key under which the response shall be signed, or null if the request asks for no signature (docs/api.md#g1). */
  kid: string | null
}

export function createRequestBody(): RequestBody {
  return {
    licenseKey: new Uint8Array(MAX_LICENSE_KEY_BYTES),
    licenseKeyLength: 0,
    machineId: new Uint8Array(MAX_MACHINE_ID_BYTES),
    machineIdLength: 0,
    ref: null,
    hostname: null,
    wantsEntitlements: false,
    kid: null,
  }
}

/** The values of a valid body. */
interface BodyValues {
  licenseKey: string
  machineId: string | null
  ref?: string | null
  hostname?: string | null
  include?: readonly string[]
  kid?: string | null
}

/** A byte order mark at the beginning of the body is skipped. */
const decoder = new TextDecoder('utf-8', { fatal: true })
const encoder = new TextEncoder()

/** The limits of a body (docs/api.md#h6). No field of a request needs more than a few levels. */
export const BODY_LIMITS: JsonLimits = { members: 256, depth: 16 }

/** Validates a JSON value against the schema of the public API. */
export function validateBody(kind: BodyKind, value: unknown): z.ZodSafeParseResult<BodyValues> {
  switch (kind) {
    case 'validateV1':
      return validateRequestV1.safeParse(value)
    case 'validateV2':
      return validateRequestV2.safeParse(value)
    case 'deactivate':
      return deactivateRequest.safeParse(value)
    default:
      return kind satisfies never
  }
}

/** Fills `out` from a JSON body. Returns false if the body is invalid. */
export function parseBody(kind: BodyKind, body: Uint8Array, out: RequestBody): boolean {
  if (exceededLimit(body, BODY_LIMITS) !== null) return false
  let parsed: BodyValues | undefined
  try {
    parsed = validateBody(kind, JSON.parse(decoder.decode(body))).data
  } catch {
    return false
  }
  if (!parsed) return false
  fillBody(parsed, out)
  return true
}

/** Writes the values of a body to `out`. The machine id must not have more than MAX_MACHINE_ID_BYTES. */
export function fillBody(body: BodyValues, out: RequestBody): void {
  const { licenseKey, machineId, ref, hostname, include, kid } = body
  out.licenseKeyLength = licenseKey.length
  if (licenseKey.length <= MAX_LICENSE_KEY_BYTES) {
    // A key that does not fit into the buffer as UTF-8 is longer than any existing key.
    const { read, written } = encoder.encodeInto(licenseKey, out.licenseKey)
    out.licenseKeyLength = read === licenseKey.length ? written : MAX_LICENSE_KEY_BYTES + 1
  }
  out.machineIdLength = machineId === null ? 0 : encoder.encodeInto(machineId, out.machineId).written
  out.ref = ref ?? null
  out.hostname = hostname ?? null
  out.wantsEntitlements = include?.includes('entitlements') ?? false
  out.kid = kid ?? null
}
