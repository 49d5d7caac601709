/**
 * Returns every form in which an address could be stored: as text, as a number, as bytes, and as encoded bytes.
 */

import { isIPv4 } from 'node:net'

export interface Needle {
  /** The address or other value that this form reveals. */
  readonly of: string
  readonly spelling: string
  readonly bytes: Uint8Array
  /** Whether the form has only four bytes, so that random data may contain it. */
  readonly isShort: boolean
}

export function needlesOf(address: string): Needle[] {
  return isIPv4(address) ? needlesOfIpv4(address) : needlesOfIpv6(address)
}

/** Returns the forms of a text that is not an address: unchanged and encoded. */
export function needlesOfText(of: string, text: string): Needle[] {
  const bytes = Buffer.from(text, 'utf8')
  return [
    ...anyCase(of, 'text', text),
    ...anyCase(of, 'text as hex', bytes.toString('hex')),
    ...base64(of, 'text', bytes),
    needle(of, 'UTF-16', Buffer.from(text, 'utf16le')),
  ]
}

function needlesOfIpv4(address: string): Needle[] {
  const octets = address.split('.').map(Number)
  const bytes = Buffer.from(octets)
  const word = bytes.readUInt32BE()
  const hex = bytes.toString('hex')
  return [
    ...needlesOfText(address, address),
    ...anyCase(address, 'padded', octets.map((octet) => String(octet).padStart(3, '0')).join('.')),
    ...anyCase(address, 'reversed', octets.toReversed().join('.')),
    ...anyCase(address, 'octal', octets.map((octet) => `0${octet.toString(8)}`).join('.')),
    ...anyCase(address, 'mapped', `${(word >>> 16).toString(16)}:${(word & 0xffff).toString(16)}`),
    ...anyCase(address, 'hex', hex),
    ...anyCase(address, 'hex of the little end', reversed(bytes).toString('hex')),
    ...numbers(address, word),
    ...bytesAsText(address, bytes),
    { ...needle(address, 'bytes', bytes), isShort: true },
    { ...needle(address, 'bytes from the little end', reversed(bytes)), isShort: true },
  ]
}

function needlesOfIpv6(address: string): Needle[] {
  const compressed = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const groups = groupsOf(compressed)
  const bytes = Buffer.from(groups.map((group) => group.padStart(4, '0')).join(''), 'hex')
  const littleWords = Buffer.from(bytes).swap32()
  return [
    ...needlesOfText(address, compressed),
    ...anyCase(address, 'as sent', address),
    ...needlesOfText(address, groups.map((group) => group.padStart(4, '0')).join(':')),
    ...needlesOfText(address, groups.join(':')),
    ...anyCase(address, 'hex', bytes.toString('hex')),
    ...anyCase(address, 'number', BigInt(`0x${bytes.toString('hex')}`).toString()),
    // Excludes the first 32-bit word, which many addresses share, and words up to 1e8, whose decimal digits occur by chance.
    ...[4, 8, 12].flatMap((at) => (bytes.readUInt32BE(at) > 1e8 ? numbers(address, bytes.readUInt32BE(at)) : [])),
    ...bytesAsText(address, bytes),
    needle(address, 'bytes', bytes),
    needle(address, 'words from the little end', littleWords),
    needle(address, 'bytes from the little end', reversed(bytes)),
  ]
}

/** Returns the eight groups of a compressed address, without leading zeros. */
function groupsOf(compressed: string): string[] {
  const [left = '', right] = compressed.split('::')
  const before = left === '' ? [] : left.split(':')
  if (right === undefined) return before
  const after = right === '' ? [] : right.split(':')
  return [...before, ...Array.from({ length: 8 - before.length - after.length }, () => '0'), ...after]
}

function numbers(of: string, word: number): Needle[] {
  return [...anyCase(of, 'number', String(word)), ...anyCase(of, 'signed number', String(word | 0))]
}

/** Returns bytes in common text forms: lists of numbers, groups of hex digits, base64. */
function bytesAsText(of: string, bytes: Buffer): Needle[] {
  const pairs = [...bytes].map((byte) => byte.toString(16).padStart(2, '0'))
  return [
    ...anyCase(of, 'list of bytes', [...bytes].join(',')),
    ...anyCase(of, 'list of bytes', [...bytes].join(', ')),
    ...[' ', ':', '-', '\\x', '%'].flatMap((between) => anyCase(of, 'hex in pairs', pairs.join(between))),
    needle(of, 'base64 of bytes', Buffer.from(bytes.toString('base64').replaceAll('=', ''))),
    needle(of, 'base64url of bytes', Buffer.from(bytes.toString('base64url'))),
  ]
}

/** Returns the base64 of a text at each of the three offsets, without letters that depend on neighboring bytes. */
function base64(of: string, what: string, bytes: Buffer): Needle[] {
  return [0, 1, 2].map((offset) => {
    const text = Buffer.concat([Buffer.alloc(offset), bytes])
      .toString('base64')
      .replaceAll('=', '')
    const from = Math.ceil((offset * 8) / 6)
    const to = Math.floor(((offset + bytes.length) * 8) / 6)
    return needle(of, `base64 of ${what}`, Buffer.from(text.slice(from, to)))
  })
}

function reversed(bytes: Uint8Array): Buffer {
  return Buffer.from([...bytes].toReversed())
}

function anyCase(of: string, spelling: string, text: string): Needle[] {
  const both = new Set([text.toLowerCase(), text.toUpperCase(), text])
  return [...both].map((each) => needle(of, spelling, Buffer.from(each)))
}

function needle(of: string, spelling: string, bytes: Uint8Array): Needle {
  return { of, spelling, bytes, isShort: false }
}
