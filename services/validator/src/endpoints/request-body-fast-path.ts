/**
 * Reads the fields of a plain body straight from its bytes, without a string or an object: it saves about 0.3 us of the
 * 8 us that a request costs. Plain means one flat object of known names, none repeated, with string values of ASCII without
 * escapes. Whatever else there is, also every malformed body, is left to the obvious way (`fields.ts`).
 */

import { maxLicenseKeyBytes, maxMachineIdBytes } from '@keyward/contract/text'

import { type BodyKind, type Fields } from './request-body.ts'

const QUOTE = 34
const BACKSLASH = 92

interface Layout {
  /** The names that the body may have, as bytes: the license key, then the machine ids in their order, then the host name. */
  names: readonly Uint8Array[]
  machineIds: number
  hostname: number
  needsMachineId: boolean
}

function layout(
  names: readonly string[],
  machineIds: number,
  options: { hostname?: number; needsMachineId?: boolean },
): Layout {
  return {
    names: names.map((name) => new TextEncoder().encode(name)),
    machineIds,
    hostname: options.hostname ?? -1,
    needsMachineId: options.needsMachineId ?? false,
  }
}

const LAYOUTS: Record<BodyKind, Layout> = {
  v1: layout(['licenseKey', 'fingerprint', 'hostname'], 1, { hostname: 2 }),
  v2: layout(['license', 'fingerprint', 'hwid', 'host', 'macAddress'], 4, {}),
  deactivate: layout(['licenseKey', 'fingerprint'], 1, { needsMachineId: true }),
}

// Where the value of each name starts and ends; start 0 means that the name has not come.
const starts = new Int32Array(5)
const ends = new Int32Array(5)

function skipSpace(body: Uint8Array, from: number): number {
  let i = from
  for (; i < body.length; i++) {
    const c = body[i]
    if (c !== 32 && c !== 10 && c !== 13 && c !== 9) break
  }
  return i
}

/** The end of a plain string whose first byte is at `from`, or -1. */
function stringEnd(body: Uint8Array, from: number): number {
  for (let i = from; i < body.length; i++) {
    const c = body[i] ?? 0
    if (c === QUOTE) return i
    if (c < 32 || c > 127 || c === BACKSLASH) return -1
  }
  return -1
}

function nameAt(names: readonly Uint8Array[], body: Uint8Array, start: number, end: number): number {
  next: for (let n = 0; n < names.length; n++) {
    const name = names[n]
    if (name === undefined || name.length !== end - start) continue
    for (let i = 0; i < name.length; i++) if (name[i] !== body[start + i]) continue next
    return n
  }
  return -1
}

/** Notes where the values lie; false when the body is not plain. */
function locate(names: readonly Uint8Array[], body: Uint8Array): boolean {
  starts.fill(0)
  let i = skipSpace(body, 0)
  if (body[i] !== 123 /* { */) return false
  do {
    i = skipSpace(body, i + 1)
    if (body[i] !== QUOTE) return false
    const nameEnd = stringEnd(body, i + 1)
    if (nameEnd < 0) return false
    const name = nameAt(names, body, i + 1, nameEnd)
    if (name < 0 || starts[name] !== 0) return false
    i = skipSpace(body, nameEnd + 1)
    if (body[i] !== 58 /* : */) return false
    i = skipSpace(body, i + 1)
    if (body[i] !== QUOTE) return false
    const end = stringEnd(body, i + 1)
    if (end < 0) return false
    starts[name] = i + 1
    ends[name] = end
    i = skipSpace(body, end + 1)
  } while (body[i] === 44 /* , */)
  return body[i] === 125 /* } */ && skipSpace(body, i + 1) === body.length
}

function copy(body: Uint8Array, start: number, length: number, out: Uint8Array): void {
  for (let i = 0; i < length; i++) out[i] = body[start + i] ?? 0
}

/** Fills `out` from a plain body; false, with `out` undefined, when the obvious way has to decide. */
export function scanFields(kind: BodyKind, body: Uint8Array, out: Fields): boolean {
  const { names, machineIds, hostname, needsMachineId } = LAYOUTS[kind]
  if (!locate(names, body)) return false
  const keyLength = (ends[0] ?? 0) - (starts[0] ?? 0)
  if (starts[0] === 0 || keyLength === 0) return false
  out.licenseKeyLength = keyLength
  if (keyLength <= maxLicenseKeyBytes) copy(body, starts[0] ?? 0, keyLength, out.licenseKey)

  out.machineIdLength = 0
  for (let n = 1; n <= machineIds; n++) {
    const length = starts[n] === 0 ? 0 : (ends[n] ?? 0) - (starts[n] ?? 0)
    if (length === 0) continue // the empty string counts as absent
    if (length > maxMachineIdBytes) return false
    out.machineIdLength = length
    copy(body, starts[n] ?? 0, length, out.machineId)
    break
  }
  if (needsMachineId && out.machineIdLength === 0) return false

  out.hostname = null
  if (hostname < 0 || starts[hostname] === 0) return true
  const start = starts[hostname] ?? 0
  const length = (ends[hostname] ?? 0) - start
  if (length > maxMachineIdBytes) return false
  if (length > 0) out.hostname = String.fromCharCode(...body.subarray(start, start + length))
  return true
}
