/**
 * Defines ordinary traffic over 10,000 licenses. Every machine checks every five minutes, and one in a hundred also every second. `RATES`
 * contains the rates of rejected and excluded checks, and of replaced machines. The traffic is seeded, so two runs send equal traffic.
 */

import { random } from '@keyward/testkit'

import { rawPost } from './checks.ts'
import { interleave } from './mix.ts'

export const LICENSES = 10_000
export const MACHINES_PER_LICENSE = 2
/** The number of full licenses. For each of these licenses, a machine without a slot sends checks, which are rejected. */
export const FULL = 200
const BUSY = (LICENSES * MACHINES_PER_LICENSE) / 100

/** The requests a second of a typical vendor, by kind. */
const RATES = new Map([
  // Every machine checks every five minutes.
  ['known', (LICENSES * MACHINES_PER_LICENSE) / 300],
  // One machine in a hundred checks every second.
  ['busy', BUSY],
  ['over the limit', FULL / 60],
  ['blacklisted', 3],
  ['excluded', 3],
  ['unknown key', 1.5],
  // 500 machines an hour are replaced.
  ['deactivation', 500 / 3_600],
  ['activation', 500 / 3_600],
] as const)
type Kind = typeof RATES extends Map<infer Name, number> ? Name : never

export const REQUESTS_PER_SECOND = [...RATES.values()].reduce((sum, rate) => sum + rate, 0)
/** The length of the sequence of kinds, in requests. Each kind is spread evenly over it. */
const SEQUENCE = 100_000

export const keyOf = (license: number): string => `SOAK-${String(license).padStart(5, '0')}`
export const machineOf = (license: number, n: number): string => `host-${license}-${n}.example`

/** Returns a function that returns the next request of the traffic. */
export function soakTraffic(url: URL, apiKey: string): () => Buffer {
  const dice = random(2_026)
  const kinds = interleave(RATES, SEQUENCE)
  const sent = new Map<Kind, number>()
  let next = 0
  return () => {
    const kind = kinds[next++ % kinds.length]!
    const n = sent.get(kind) ?? 0
    sent.set(kind, n + 1)
    const { path = '/api/v1/validate', license, machine } = requestOf(kind, n, dice.int(LICENSES))
    const body = JSON.stringify({ licenseKey: license, fingerprint: machine })
    return rawPost(url.host, path, { authorization: `Bearer ${apiKey}` }, body)
  }
}

/** Returns request number `n` of a kind. `any` is the number of a random license. */
function requestOf(kind: Kind, n: number, any: number): { path?: string; license: string; machine: string } {
  const free = FULL + (n % (LICENSES - FULL))
  switch (kind) {
    case 'known': {
      const machine = n % (LICENSES * MACHINES_PER_LICENSE)
      const license = machine % LICENSES
      return { license: keyOf(license), machine: machineOf(license, Math.floor(machine / LICENSES)) }
    }
    case 'busy':
      return { license: keyOf((n % BUSY) + FULL), machine: machineOf((n % BUSY) + FULL, 0) }
    case 'over the limit':
      return { license: keyOf(n % FULL), machine: machineOf(n % FULL, MACHINES_PER_LICENSE) }
    case 'blacklisted':
      return { license: keyOf(any), machine: 'soak-blacklisted' }
    case 'excluded':
      return { license: keyOf(any), machine: 'soak-excluded' }
    case 'unknown key':
      return { license: `no-such-key-${n}`, machine: 'any' }
    case 'deactivation':
      return { path: '/api/v1/deactivate', license: keyOf(free), machine: machineOf(free, MACHINES_PER_LICENSE - 1) }
    case 'activation':
      return { path: '/api/v1/activate', license: keyOf(free), machine: machineOf(free, 100 + n) }
    default:
      return kind satisfies never
  }
}
