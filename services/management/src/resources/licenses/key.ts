/**
 * Generates license keys of the form `XXXX-XXXX-XXXX-XXXX` with 80 random bits. The alphabet has 32 letters and digits, without 0, 1, I and
 * O.
 */

import { randomBytes } from 'node:crypto'

const ALPHABET = '23456789ABCDEFGHJKLMNPQRSTUVWXYZ'
const LENGTH = 16

export function generateLicenseKey(): string {
  // 256 is a multiple of 32, so every character is equally likely.
  const letters = Array.from(randomBytes(LENGTH), (byte) => ALPHABET.charAt(byte % ALPHABET.length)).join('')
  return letters.replaceAll(/.{4}(?!$)/g, '$&-')
}
