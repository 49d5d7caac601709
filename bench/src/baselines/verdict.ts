/** Decides checks in JavaScript, for the baselines whose app server reads rows from a store. */

import { formatNetwork, parseNetwork } from '@keyward/address'
import { CODE_MESSAGES } from '@keyward/contract/codes'

/** The fields of a v2 request that a baseline reads. */
export interface Request {
  licenseKey: string
  machineId: string
}

/** The fields of a license in the store that a verdict depends on. */
export interface License {
  status: 'active' | 'suspended' | 'revoked'
  expiresAtMs: number
  /** The expiry in ISO 8601, or null. */
  expiresAt: string | null
  maxMachines: number | null
}

/**
 * A rule that matches. The rule with the highest rank of scope decides. Among rules of the same scope, the rule with the highest rank of
 * effect decides.
 */
export interface Match {
  scope: 1 | 2 | 3
  effect: 1 | 2 | 3
}

/** The ranks of scopes and effects. */
export const SCOPE = { ORGANIZATION: 1, PRODUCT: 2, LICENSE: 3 } as const
export const EFFECT = { blacklist: 1, exclusion: 2, exclusionThatAllows: 3 } as const

export interface Reply {
  status: 200 | 400
  body: { valid: boolean; status: number; message: string; code: keyof typeof CODE_MESSAGES; expiresAt?: string | null }
}

/** Returns the request in a parsed body, or null if the body is malformed. */
export function readRequest(body: unknown): Request | null {
  if (typeof body !== 'object' || body === null) return null
  const {
    license,
    ...fields
  }: { license?: unknown; fingerprint?: unknown; hwid?: unknown; host?: unknown; macAddress?: unknown } = body
  const machineId = fields.fingerprint || fields.hwid || fields.host || fields.macAddress || ''
  return typeof license === 'string' && typeof machineId === 'string' ? { licenseKey: license, machineId } : null
}

/** Returns the last address of `x-forwarded-for`, because every peer is a proxy. Returns the peer's address if the header is absent. */
export function clientAddress(forwardedFor: string | string[] | undefined, peer: string | undefined): string {
  const list = typeof forwardedFor === 'string' ? forwardedFor : (forwardedFor?.at(-1) ?? '')
  return list.slice(list.lastIndexOf(',') + 1).trim() || (peer ?? '')
}

/** The prefix lengths of the networks in an organization's rules. */
export class PrefixLengths {
  readonly #lengths: Record<4 | 6, number[]> = { 4: [], 6: [] }

  /** Adds the prefix length of a rule's network. `value` is the network in canonical form. */
  add(value: string): void {
    const network = parseNetwork(value)
    if (network === null) return
    const list = this.#lengths[network.family]
    if (!list.includes(network.prefixLength)) list.push(network.prefixLength)
  }

  /** Returns the networks of these lengths that contain the address, in canonical form. */
  networksOf(address: string): string[] {
    const { length } = this.#lengths[4]
    if (length === 0 && this.#lengths[6].length === 0) return []
    const network = parseNetwork(address)
    if (network === null) return []
    return this.#lengths[network.family].map((prefixLength) => {
      const [w0 = 0, w1 = 0, w2 = 0, w3 = 0] = network.words.map((word, i) => masked(word, prefixLength - 32 * i))
      return formatNetwork(
        network.family === 4
          ? { family: 4, words: [w0], prefixLength }
          : { family: 6, words: [w0, w1, w2, w3], prefixLength },
      )
    })
  }
}

function masked(word: number, bits: number): number {
  return bits <= 0 ? 0 : bits >= 32 ? word : (word & (-1 << (32 - bits))) >>> 0
}

/**
 * Decides a check. `claim` takes a slot for an unknown machine and returns whether a slot was free. For a license without a limit, it
 * records the machine and returns true.
 */
export async function decide(
  license: License | null,
  matches: readonly Match[],
  machineId: string,
  isKnown: boolean,
  claim: () => Promise<boolean>,
): Promise<Reply> {
  if (license === null) return rejected('NOT_FOUND')
  let decisive: Match | null = null
  for (const match of matches)
    if (
      decisive === null ||
      match.scope > decisive.scope ||
      (match.scope === decisive.scope && match.effect > decisive.effect)
    )
      decisive = match
  if (decisive?.effect === EFFECT.blacklist) return rejected('BLACKLISTED')
  if (license.status === 'revoked') return rejected('REVOKED')
  if (decisive?.effect !== EFFECT.exclusionThatAllows) {
    if (license.status === 'suspended') return rejected('SUSPENDED')
    if (license.expiresAtMs <= Date.now()) return rejected('EXPIRED')
  }
  if (decisive !== null) return valid(license)
  if (machineId === '') return license.maxMachines === null ? valid(license) : rejected('FINGERPRINT_REQUIRED')
  return isKnown || (await claim()) ? valid(license) : rejected('TOO_MANY_MACHINES')
}

function valid({ expiresAt }: License): Reply {
  return { status: 200, body: { valid: true, status: 200, message: CODE_MESSAGES.VALID, code: 'VALID', expiresAt } }
}

function rejected(code: Exclude<keyof typeof CODE_MESSAGES, 'VALID'>): Reply {
  return { status: 400, body: { valid: false, status: 400, message: CODE_MESSAGES[code], code } }
}
