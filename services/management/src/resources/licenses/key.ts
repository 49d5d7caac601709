/** New license keys: `XXXX-XXXX-XXXX-XXXX`, 80 random bits, from 32 letters and digits without look-alikes (no 0, 1, I, O). */
import { randomBytes } from 'node:crypto'

const alphabet = '23456789ABCDEFGHJKLMNPQRSTUVWXYZ'
const length = 16

export function generateLicenseKey(): string {
  // 256 is a multiple of 32, so every letter is equally likely.
  const letters = Array.from(randomBytes(length), (byte) => alphabet.charAt(byte % alphabet.length)).join('')
  return letters.replaceAll(/.{4}(?!$)/g, '$&-')
}
