/**
 * Scans JSON in UTF-8 without parsing it. JSON.parse creates an object for every value: each new member name costs about a microsecond, and a
 * deeply nested value 20 times as much as a flat one of the same size. A scan bounds both before the parse, and finds the elements of an array,
 * so that each can be parsed separately. It verifies only the strings and the number of brackets.
 */

const QUOTE = 34
const COMMA = 44
const COLON = 58
const OPEN_BRACKET = 91
const BACKSLASH = 92
const CLOSE_BRACKET = 93
const OPEN_BRACE = 123
const CLOSE_BRACE = 125

export interface JsonLimits {
  /** The maximum number of members of all objects together. */
  members: number
  /** The maximum number of brackets that are open at the same time. */
  depth: number
}

/** Returns the limit that the bytes exceed first, or null. The bytes need not be JSON. */
export function exceededLimit(bytes: Uint8Array, { members, depth }: JsonLimits): keyof JsonLimits | null {
  let memberCount = 0
  let open = 0
  for (let at = 0; at < bytes.length; at++) {
    const c = bytes[at]!
    if (c === QUOTE) {
      at = stringEnd(bytes, at) - 1
      if (at < 0) return null
    } else if (c === COLON && ++memberCount > members) return 'members'
    else if ((c === OPEN_BRACE || c === OPEN_BRACKET) && ++open > depth) return 'depth'
    else if (c === CLOSE_BRACE || c === CLOSE_BRACKET) open--
  }
  return null
}

/** Returns the index after the string that begins with the quote at `from`, or -1 if it does not end. */
export function stringEnd(bytes: Uint8Array, from: number): number {
  for (let at = from + 1; at < bytes.length; at++) {
    if (bytes[at] === QUOTE) return at + 1
    if (bytes[at] === BACKSLASH) at++
  }
  return -1
}

/** Returns the index of the first byte at or after `from` that is not white space of JSON. */
export function skipSpace(bytes: Uint8Array, from: number): number {
  let at = from
  for (; at < bytes.length; at++) {
    const c = bytes[at]!
    // Most calls end at this comparison.
    if (c > 32 || (c !== 32 && c !== 10 && c !== 13 && c !== 9)) break
  }
  return at
}

/**
 * Returns the index after the JSON value at `from`, or -1 if the value is incomplete or exceeds a limit. `limits.members` is decreased by the
 * number of members, so that one limit applies to many values.
 */
export function valueEnd(bytes: Uint8Array, from: number, limits: JsonLimits): number {
  let open = 0
  for (let at = from; at < bytes.length;) {
    const c = bytes[at]!
    if (c === QUOTE) {
      at = stringEnd(bytes, at)
      if (at < 0) return -1
    } else if (c === OPEN_BRACE || c === OPEN_BRACKET) {
      if (++open > limits.depth) return -1
      at++
    } else if (c === CLOSE_BRACE || c === CLOSE_BRACKET) {
      if (--open < 0) return -1
      at++
    } else if (open === 0) return scalarEnd(bytes, at)
    else {
      if (c === COLON && --limits.members < 0) return -1
      at++
    }
    if (open === 0) return at
  }
  return -1
}

/** Returns the index after the number or literal at `from`, or -1 if neither begins there. */
function scalarEnd(bytes: Uint8Array, from: number): number {
  let at = from
  for (; at < bytes.length; at++) {
    const c = bytes[at]!
    if (c <= 32 || c >= 127 || c === COMMA || c === CLOSE_BRACE || c === CLOSE_BRACKET) break
  }
  return at > from ? at : -1
}

/**
 * Calls `visit` with the start of each element of the array whose opening bracket is before `from`. `visit` returns the index after the
 * element, or -1 to end the scan. Returns the index after the array, or -1.
 */
export function scanElements(bytes: Uint8Array, from: number, visit: (start: number) => number): number {
  let at = skipSpace(bytes, from)
  if (bytes[at] === CLOSE_BRACKET) return at + 1
  for (; ; at = skipSpace(bytes, at + 1)) {
    const end = visit(at)
    if (end < 0) return -1
    at = skipSpace(bytes, end)
    if (bytes[at] === CLOSE_BRACKET) return at + 1
    if (bytes[at] !== COMMA) return -1
  }
}

/**
 * Calls `visit` with the name and the start of each member of the object that is the whole text. The name includes its quotes. `visit` returns
 * the index after the value, or -1 to end the scan. Returns whether the text is an object.
 */
export function scanMembers(bytes: Uint8Array, visit: (name: Uint8Array, start: number) => number): boolean {
  const hasByteOrderMark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
  let at = skipSpace(bytes, hasByteOrderMark ? 3 : 0)
  if (bytes[at] !== OPEN_BRACE) return false
  do {
    const name = skipSpace(bytes, at + 1)
    const nameEnd = bytes[name] === QUOTE ? stringEnd(bytes, name) : -1
    if (nameEnd < 0) return false
    const colon = skipSpace(bytes, nameEnd)
    if (bytes[colon] !== COLON) return false
    const end = visit(bytes.subarray(name, nameEnd), skipSpace(bytes, colon + 1))
    if (end < 0) return false
    at = skipSpace(bytes, end)
  } while (bytes[at] === COMMA)
  return bytes[at] === CLOSE_BRACE && skipSpace(bytes, at + 1) === bytes.length
}
