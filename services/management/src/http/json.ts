/**
 * Parses the JSON of a request. Invalid UTF-8 is an error and is never replaced, so that two different ids cannot become equal. The cost is
 * linear in the size of the text, even for deeply nested values.
 */

import { ApiError, invalid } from './problem.ts'
import { pointerTo } from './validation-errors.ts'

/** The depth to which `rejectProto` searches. No schema allows deeper values. This depth also bounds the length of a pointer. */
const MAX_DEPTH = 20

/**
 * The maximum nesting depth of a body. No schema allows values of this depth. V8 takes 20 times as long to parse a deep value as to parse a
 * flat value of the same size.
 */
const MAX_NESTING = 100
const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/**
 * Returns the position of the quote that ends a string, or the length of the text when the string is not closed. `start` is the position
 * after the opening quote.
 */
function endOfString(bytes: Uint8Array, start: number): number {
  for (let from = start; ;) {
    const quote = bytes.indexOf(QUOTE, from)
    if (quote < 0) return bytes.length
    let first = quote
    while (first > start && bytes[first - 1] === BACKSLASH) first--
    if ((quote - first) % 2 === 0) return quote
    from = quote + 1
  }
}

/** Returns whether objects and lists are nested deeper than MAX_NESTING. */
function isTooDeep(bytes: Uint8Array): boolean {
  let depth = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!
    if (byte === QUOTE) at = endOfString(bytes, at + 1)
    else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      if (++depth > MAX_NESTING) return true
    } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth--
  }
  return false
}

/** The decoder of a whole body, which ignores a byte order mark at the beginning, and that of a part, where the mark is an error. */
const WHOLE = new TextDecoder('utf-8', { fatal: true })
const INNER = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function inAnySpelling(char: string): string {
  return String.raw`(?:${char}|\\u00${(char.codePointAt(0) ?? 0).toString(16)})`
}

/**
 * Matches the member name `__proto__` in every spelling. It also matches the end of a longer name, so a match must be confirmed in the
 * parsed value.
 */
const PROTO = new RegExp(String.raw`${Array.from('__proto__', inAnySpelling).join('')}"\s*:`, 'i')

/** An object or list inside the body. Its path is computed from its parents, so that no place stores a path. */
interface Place {
  value: object
  name: string | number
  parent: Place | null
  depth: number
}

function pathTo(place: Place, base: readonly PropertyKey[]): PropertyKey[] {
  const path: PropertyKey[] = ['__proto__']
  for (let at = place; at.parent !== null; at = at.parent) path.unshift(at.name)
  return [...base, ...path]
}

/** Appends to `open` the objects and lists that the place contains. */
function addMembers(open: Place[], parent: Place): void {
  const depth = parent.depth + 1
  const add = (name: string | number, value: unknown) => {
    if (typeof value === 'object' && value !== null) open.push({ value, name, parent, depth })
  }
  if (Array.isArray(parent.value)) parent.value.forEach((member: unknown, i) => add(i, member))
  else for (const [name, member] of Object.entries(parent.value)) add(name, member)
}

/**
 * Throws INVALID_REQUEST when any object has a member `__proto__`, which JavaScript code could lose before the value is stored. Searches
 * the value only if its text can contain the name.
 */
function rejectProto(text: string, value: unknown, base: readonly PropertyKey[]): void {
  if (typeof value !== 'object' || value === null || !PROTO.test(text)) return
  const open: Place[] = [{ value, name: '', parent: null, depth: 0 }]
  for (let place = open.pop(); place; place = open.pop()) {
    if (Object.hasOwn(place.value, '__proto__'))
      throw invalid(pointerTo('#', pathTo(place, base)), 'is not allowed as a name')
    if (place.depth < MAX_DEPTH) addMembers(open, place)
  }
}

/**
 * Returns the parsed text. `base` is the path of this text in the body. Throws MALFORMED_JSON, and INVALID_REQUEST for the name `__proto__`
 * or for nesting deeper than MAX_NESTING.
 */
export function parseJson(bytes: Uint8Array, base: readonly PropertyKey[] = []): unknown {
  if (isTooDeep(bytes)) throw invalid(pointerTo('#', [...base]), `must not be nested deeper than ${MAX_NESTING}`)
  let text: string
  let parsed: unknown
  try {
    text = (base.length > 0 ? INNER : WHOLE).decode(bytes)
    parsed = JSON.parse(text)
  } catch {
    throw new ApiError('MALFORMED_JSON', 'The body must be JSON in UTF-8.')
  }
  rejectProto(text, parsed, base)
  return parsed
}
