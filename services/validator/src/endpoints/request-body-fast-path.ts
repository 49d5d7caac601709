/**
 * Reads the fields of a plain body directly from its bytes, without creating a string or an object, and strings four bytes at a time. JSON.parse
 * and the schema take 1.7 us for the same body, a fifth of a whole request; this code takes 0.13 us. A plain body is one flat object. Its names
 * are known and distinct. The value of `include` is `["entitlements"]`, and the other values are strings of ASCII without escapes. `parseBody`
 * reads all other bodies, including the invalid ones.
 */

import { MAX_LICENSE_KEY_BYTES, MAX_MACHINE_ID_BYTES } from '@keyward/contract/text'
import { MAX_KID_LENGTH, MAX_BATCH_BODY_BYTES, NONCE_LENGTH } from '@keyward/contract/validation'
import { skipSpace } from '@keyward/runtime/json-scan'

import { type BodyKind, type RequestBody } from './request-body.ts'

const QUOTE = 34
const BACKSLASH = 92

/** The name of a member with its closing quote, in UTF-8. */
interface Name {
  bytes: Uint8Array
  /** A view of `bytes`. */
  text: DataView
}

interface Layout {
  /**
   * The allowed names in UTF-8, in this order: the license key, the machine ids in their order of precedence, the hostname,
   * `include`, the nonce and the id of the key of a signed response.
   */
  names: readonly Name[]
  /** The number of names of machine ids. */
  machineIds: number
  /** The index of the hostname in `names`, or -1 if the body has no hostname. */
  hostname: number
  /** The index of `include` in `names`, or -1 if the body has no `include`. */
  include: number
  /** The index of the nonce in `names`. The id of the key follows it. */
  nonce: number
  needsMachineId: boolean
}

function layout(
  names: readonly string[],
  machineIds: number,
  options: { hostname?: number; include?: number; needsMachineId?: boolean },
): Layout {
  return {
    names: names.map((name) => {
      const bytes = new TextEncoder().encode(`${name}"`)
      return { bytes, text: new DataView(bytes.buffer, bytes.byteOffset) }
    }),
    machineIds,
    hostname: options.hostname ?? -1,
    include: options.include ?? -1,
    nonce: names.length - 2,
    needsMachineId: options.needsMachineId ?? false,
  }
}

const LAYOUTS: Record<BodyKind, Layout> = {
  validateV1: layout(['licenseKey', 'fingerprint', 'hostname', 'include', 'nonce', 'kid'], 1, {
    hostname: 2,
    include: 3,
  }),
  validateV2: layout(['license', 'fingerprint', 'hwid', 'host', 'macAddress', 'include', 'nonce', 'kid'], 4, {
    include: 5,
  }),
  deactivate: layout(['licenseKey', 'fingerprint', 'nonce', 'kid'], 1, { needsMachineId: true }),
}

// The positions in the body at which each value starts and ends, by the index of its name. A start of 0 means that the name is
// missing.
const starts = new Int32Array(8)
const ends = new Int32Array(8)

const ENTITLEMENTS = new TextEncoder().encode('"entitlements"')

/**
 * A copy of the body that is being read, followed by zeros. Strings are read from this copy in words of four bytes. The index of a byte is
 * the same as in the body.
 */
const copied = new Uint8Array(MAX_BATCH_BODY_BYTES + 16)
const words = new DataView(copied.buffer)
const copiedText = Buffer.from(copied.buffer)

/** Begins to read a body. Returns false when the body is longer than MAX_BATCH_BODY_BYTES. */
export function beginBody(body: Uint8Array): boolean {
  const { length } = body
  if (length > MAX_BATCH_BODY_BYTES) return false
  copied.set(body)
  words.setInt32(length, 0)
  return true
}

const EACH_BYTE = 0x01010101
const HIGH_BITS = 0x80808080 | 0

/**
 * Returns the index of the closing quote of a string whose first byte is at `from`, or -1 if the string is not plain. The result is the
 * same as if each byte were compared with the quote, the backslash, and the bounds 32 and 127.
 */
function stringEnd(from: number): number {
  for (let i = from; ; i += 4) {
    const word = words.getInt32(i, true)
    const quote = word ^ (EACH_BYTE * QUOTE)
    const backslash = word ^ (EACH_BYTE * BACKSLASH)
    // The lowest set bit marks the first byte that is not a plain character. Higher set bits may mark plain characters.
    const found =
      (((quote - EACH_BYTE) & ~quote) |
        ((backslash - EACH_BYTE) & ~backslash) |
        ((word - EACH_BYTE * 32) & ~word) |
        word) &
      HIGH_BITS
    if (found === 0) continue
    const end = i + ((31 - Math.clz32(found & -found)) >> 3)
    return copied[end] === QUOTE ? end : -1
  }
}

/** Returns the index of the name that begins at `start` and ends with a quote, or -1 if the name is unknown. */
function nameAt(names: readonly Name[], start: number): number {
  next: for (let n = 0; n < names.length; n++) {
    const { text, bytes } = names[n]!
    let i = 0
    for (; i + 4 <= bytes.length; i += 4) if (words.getInt32(start + i, true) !== text.getInt32(i, true)) continue next
    for (; i < bytes.length; i++) if (copied[start + i] !== bytes[i]) continue next
    return n
  }
  return -1
}

/** Returns the index of the bracket that closes the value `["entitlements"]` at `from`, or -1 for any other value. */
function includeEnd(body: Uint8Array, from: number): number {
  if (body[from] !== 91 /* [ */) return -1
  const at = skipSpace(body, from + 1)
  for (let i = 0; i < ENTITLEMENTS.length; i++) if (body[at + i] !== ENTITLEMENTS[i]) return -1
  const end = skipSpace(body, at + ENTITLEMENTS.length)
  return body[end] === 93 /* ] */ ? end : -1
}

/**
 * Fills `starts` and `ends` from the object that begins at `from`. Returns the index after its closing brace, or -1 if the
 * object is not plain.
 */
function locate(names: readonly Name[], include: number, body: Uint8Array, from: number): number {
  for (let n = 0; n < starts.length; n++) starts[n] = 0
  let i = from
  if (body[i] !== 123 /* { */) return -1
  do {
    i = skipSpace(body, i + 1)
    if (body[i] !== QUOTE) return -1
    const name = nameAt(names, i + 1)
    if (name < 0 || starts[name] !== 0) return -1
    i = skipSpace(body, i + 1 + names[name]!.bytes.length)
    if (body[i] !== 58 /* : */) return -1
    i = skipSpace(body, i + 1)
    const end = name === include ? includeEnd(body, i) : body[i] === QUOTE ? stringEnd(i + 1) : -1
    if (end < 0) return -1
    starts[name] = i + 1
    ends[name] = end
    i = skipSpace(body, end + 1)
  } while (body[i] === 44 /* , */)
  return body[i] === 125 /* } */ ? i + 1 : -1
}

/** Copies `length` bytes that begin at `start`, and up to three bytes after them. */
function copy(start: number, length: number, out: DataView): void {
  for (let i = 0; i < length; i += 4) out.setInt32(i, words.getInt32(start + i, true), true)
}

/** Returns the value of a name, or '' if the name is missing. */
function textAt(name: number): string {
  return starts[name] === 0 ? '' : copiedText.toString('latin1', starts[name], ends[name])
}

const BASE64URL = new Uint8Array(256)
for (const code of Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_')) BASE64URL[code] = 1

/** Returns whether the value of a name has between `min` and `max` characters, all of them of base64url. */
function isBase64Url(name: number, min: number, max: number): boolean {
  const end = ends[name]!
  const length = starts[name] === 0 ? 0 : end - starts[name]!
  if (length < min || length > max) return false
  for (let i = end - length; i < end; i++) if (BASE64URL[copied[i]!] === 0) return false
  return true
}

/** Fills a body from plain objects. Copying words instead of bytes saves a third of the time. */
export class PlainBodyParser {
  readonly #out: RequestBody
  // The lengths of both fields are multiples of 4.
  readonly #licenseKey: DataView
  readonly #machineId: DataView

  constructor(out: RequestBody) {
    this.#out = out
    this.#licenseKey = new DataView(out.licenseKey.buffer)
    this.#machineId = new DataView(out.machineId.buffer)
  }

  /** Fills the body from a plain one. Returns false if `parseBody` must read it; the content of the body is then undefined. */
  parse(kind: BodyKind, body: Uint8Array): boolean {
    if (!beginBody(body)) return false
    const end = this.parseObject(kind, body, skipSpace(body, 0))
    return end >= 0 && skipSpace(body, end) === body.length
  }

  /**
   * Fills the body from the plain object that begins at `from` in the body of the last `beginBody`. Returns the index after the object, or -1
   * if `parseBody` must read it; the content of the body is then undefined.
   */
  parseObject(kind: BodyKind, body: Uint8Array, from: number): number {
    const out = this.#out
    const { names, machineIds, hostname, include, nonce, needsMachineId } = LAYOUTS[kind]
    const objectEnd = locate(names, include, body, from)
    if (objectEnd < 0) return -1
    const keyLength = ends[0]! - starts[0]!
    if (starts[0] === 0 || keyLength === 0) return -1
    out.licenseKeyLength = keyLength
    if (keyLength <= MAX_LICENSE_KEY_BYTES) copy(starts[0]!, keyLength, this.#licenseKey)

    out.machineIdLength = 0
    for (let n = 1; n <= machineIds; n++) {
      const length = starts[n] === 0 ? 0 : ends[n]! - starts[n]!
      if (length === 0) continue // the empty string counts as absent
      if (length > MAX_MACHINE_ID_BYTES) return -1
      out.machineIdLength = length
      copy(starts[n]!, length, this.#machineId)
      break
    }
    if (needsMachineId && out.machineIdLength === 0) return -1

    out.ref = null
    out.wantsEntitlements = include >= 0 && starts[include] !== 0
    out.kid = null
    if (starts[nonce] !== 0 || starts[nonce + 1] !== 0) {
      if (!isBase64Url(nonce, NONCE_LENGTH, NONCE_LENGTH) || !isBase64Url(nonce + 1, 1, MAX_KID_LENGTH)) return -1
      out.kid = textAt(nonce + 1)
    }
    out.hostname = null
    if (hostname < 0 || starts[hostname] === 0) return objectEnd
    const length = ends[hostname]! - starts[hostname]!
    if (length > MAX_MACHINE_ID_BYTES) return -1
    if (length > 0) out.hostname = textAt(hostname)
    return objectEnd
  }
}
