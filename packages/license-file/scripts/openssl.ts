/**
 * Signs and verifies with the OpenSSL command line, an implementation that is independent of this package.
 */

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The bytes that precede the 32-byte seed in the PKCS #8 form of an Ed25519 private key. */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex')

/** Returns whether an OpenSSL that can sign with Ed25519 (3.0 or newer) is installed. */
export function hasOpenssl(): boolean {
  const { status, stdout } = spawnSync('openssl', ['version'], { encoding: 'utf8' })
  return status === 0 && /^OpenSSL [3-9]/.test(stdout)
}

/** Returns the public key of the private key with this 32-byte seed, as X.509 SubjectPublicKeyInfo. */
export function opensslPublicKey(seed: Uint8Array): Buffer {
  return withFiles({ key: pkcs8(seed) }, ({ key }) =>
    openssl(['pkey', '-inform', 'DER', '-in', key, '-pubout', '-outform', 'DER']),
  )
}

/** Returns the 64-byte Ed25519 signature of `message`. */
export function opensslSign(message: Uint8Array, seed: Uint8Array): Buffer {
  return withFiles({ key: pkcs8(seed), message }, (paths) =>
    openssl(['pkeyutl', '-sign', '-rawin', '-keyform', 'DER', '-inkey', paths.key, '-in', paths.message]),
  )
}

/** Returns whether OpenSSL accepts the signature by a public key, which is given as X.509 SubjectPublicKeyInfo. */
export function opensslVerifies(message: Uint8Array, signature: Uint8Array, spki: Uint8Array): boolean {
  return withFiles({ key: spki, message, signature }, (paths) => {
    const key = ['-pubin', '-keyform', 'DER', '-inkey', paths.key]
    const input = ['-in', paths.message, '-sigfile', paths.signature]
    return spawnSync('openssl', ['pkeyutl', '-verify', '-rawin', ...key, ...input]).status === 0
  })
}

/** Generates a private key of any algorithm and returns its public key as X.509 SubjectPublicKeyInfo. */
export function opensslNewPublicKey(algorithm: string): Buffer {
  const privateKey = openssl(['genpkey', '-algorithm', algorithm, '-outform', 'DER'])
  return withFiles({ key: privateKey }, ({ key }) =>
    openssl(['pkey', '-inform', 'DER', '-in', key, '-pubout', '-outform', 'DER']),
  )
}

function pkcs8(seed: Uint8Array): Buffer {
  return Buffer.concat([PKCS8_PREFIX, seed])
}

function openssl(args: string[]): Buffer {
  const { status, stdout, stderr } = spawnSync('openssl', args)
  if (status !== 0) throw new Error(`openssl ${args.join(' ')}: ${stderr.toString()}`)
  return stdout
}

function withFiles<Name extends string, Result>(
  contents: Record<Name, Uint8Array>,
  use: (paths: Record<Name, string>) => Result,
): Result {
  const folder = mkdtempSync(join(tmpdir(), 'keyward-openssl-'))
  try {
    const paths: Record<string, string> = {}
    for (const name in contents) {
      paths[name] = join(folder, name)
      writeFileSync(join(folder, name), contents[name])
    }
    return use(paths)
  } finally {
    rmSync(folder, { recursive: true })
  }
}
