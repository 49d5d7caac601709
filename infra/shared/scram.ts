/**
 * Computes SCRAM verifiers, the form in which Postgres stores passwords. A statement that contains a verifier reveals no
 * password in the server's log or in `pg_stat_statements`.
 */

import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto'

/** The number of iterations: the default of Postgres (`scram_iterations`). */
const ITERATIONS = 4_096

/** Returns the SCRAM-SHA-256 verifier (RFC 5803) of a password, with a new salt unless one is given. */
export function scramVerifier(password: string, salt = randomBytes(16)): string {
  const salted = pbkdf2Sync(prepare(password), salt, ITERATIONS, 32, 'sha256')
  const clientKey = hmac(salted, 'Client Key')
  const storedKey = createHash('sha256').update(clientKey).digest('base64')
  const serverKey = hmac(salted, 'Server Key').toString('base64')
  return `SCRAM-SHA-256$${ITERATIONS}:${salt.toString('base64')}$${storedKey}:${serverKey}`
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}

/**
 * Normalizes a password like Postgres and its clients (SASLprep, RFC 4013), but without the checks for forbidden
 * characters.
 */
function prepare(password: string): string {
  return password
    .replaceAll(/[\u00a0\u1680\u2000-\u200b\u202f\u205f\u3000]/g, ' ')
    .replaceAll(/\u00ad|\u034f|\u1806|[\u180b-\u180d]|\u200c|\u200d|\u2060|[\ufe00-\ufe0f]|\ufeff/g, '')
    .normalize('NFKC')
}
