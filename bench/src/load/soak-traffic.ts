/**
 * Sends ordinary traffic over 10,000 licenses in real time. Every machine checks every five minutes, and one in a hundred also every
 * second. `KINDS` contains the rates of rejected and excluded checks, and of replaced machines. The traffic is seeded, so two runs send
 * equal traffic.
 */

import { Agent, request } from 'node:http'

import { random, type Random } from '@keyward/testkit'

export const LICENSES = 10_000
export const MACHINES_PER_LICENSE = 2
/** The number of full licenses. For each of these licenses, a machine without a slot sends checks, which are rejected. */
export const FULL = 200

/** The rates of a typical vendor. */
const KINDS = [
  // Every machine checks every five minutes.
  { name: 'known', perSecond: (LICENSES * MACHINES_PER_LICENSE) / 300 },
  // One machine in a hundred checks every second.
  { name: 'busy', perSecond: (LICENSES * MACHINES_PER_LICENSE) / 100 },
  { name: 'over the limit', perSecond: FULL / 60 },
  { name: 'blacklisted', perSecond: 3 },
  { name: 'excluded', perSecond: 3 },
  { name: 'unknown key', perSecond: 1.5 },
  // 500 machines an hour are replaced.
  { name: 'new machine', perSecond: 500 / 3_600 },
] as const
type Kind = (typeof KINDS)[number]['name']

export const CHECKS_PER_SECOND = KINDS.reduce((sum, { perSecond }) => sum + perSecond, 0)

export const keyOf = (license: number): string => `SOAK-${String(license).padStart(5, '0')}`
export const machineOf = (license: number, n: number): string => `host-${license}-${n}.example`

export interface Sent {
  checks: number
  failed: number
  codes: Record<string, number>
}

const TICK_MS = 50

/**
 * Sends checks for `durationMs`. Returns the counts after the last response. If the validator is slow, checks are sent later, but none
 * is omitted.
 */
export async function sendTraffic(port: number, secret: string, durationMs: number): Promise<Sent> {
  const dice = random(2_026)
  const agent = new Agent({ keepAlive: true, maxSockets: 32 })
  const sent: Sent = { checks: 0, failed: 0, codes: {} }
  const pending: Promise<void>[] = []
  const startedMs = performance.now()
  const due = new Map<Kind, number>(KINDS.map(({ name }) => [name, 0]))
  for (let elapsedMs = 0; elapsedMs < durationMs; elapsedMs = performance.now() - startedMs) {
    for (const { name, perSecond } of KINDS) {
      const wanted = (elapsedMs / 1_000) * perSecond
      for (let n = due.get(name) ?? 0; n < wanted; n++) {
        due.set(name, n + 1)
        pending.push(sendOne(name, n))
      }
    }
    await new Promise((resolve) => setTimeout(resolve, TICK_MS))
    await Promise.all(pending.splice(0, Math.max(0, pending.length - 10_000)))
  }
  await Promise.all(pending)
  agent.destroy()
  return sent

  async function sendOne(kind: Kind, n: number): Promise<void> {
    for (const [path, license, fingerprint] of requestsOf(kind, n, dice)) {
      const text = await post(path, { licenseKey: license, fingerprint })
      const code = /"(?:code":"(\w+)|(deactivated))"/.exec(text)
      sent.checks += path.endsWith('deactivate') ? 0 : 1
      if (code === null) sent.failed++
      else sent.codes[code[1] ?? 'deactivated'] = (sent.codes[code[1] ?? 'deactivated'] ?? 0) + 1
    }
  }

  function post(path: string, body: object): Promise<string> {
    const text = JSON.stringify(body)
    return new Promise((resolve) => {
      const headers = { authorization: `Bearer ${secret}`, 'content-length': Buffer.byteLength(text) }
      const outgoing = request({ host: '127.0.0.1', port, path, method: 'POST', agent, headers }, (response) => {
        let received = ''
        response.setEncoding('utf8').on('data', (chunk: string) => (received += chunk))
        response.on('end', () => resolve(received))
      })
      outgoing.on('error', () => resolve(''))
      outgoing.end(text)
    })
  }
}

type Step = [path: string, licenseKey: string, fingerprint: string]

function requestsOf(kind: Kind, n: number, dice: Random): Step[] {
  const validate = '/api/v1/validate'
  const license = dice.int(LICENSES)
  switch (kind) {
    case 'known': {
      const machine = n % (LICENSES * MACHINES_PER_LICENSE)
      return [[validate, keyOf(machine % LICENSES), machineOf(machine % LICENSES, Math.floor(machine / LICENSES))]]
    }
    case 'busy': {
      const busy = (n % ((LICENSES * MACHINES_PER_LICENSE) / 100)) + FULL
      return [[validate, keyOf(busy), machineOf(busy, 0)]]
    }
    case 'over the limit':
      return [[validate, keyOf(n % FULL), machineOf(n % FULL, MACHINES_PER_LICENSE)]]
    case 'blacklisted':
      return [[validate, keyOf(license), 'soak-blacklisted']]
    case 'excluded':
      return [[validate, keyOf(license), 'soak-excluded']]
    case 'unknown key':
      return [[validate, `no-such-key-${n}`, 'any']]
    case 'new machine': {
      const free = FULL + (n % (LICENSES - FULL))
      const machine = machineOf(free, 100 + n)
      return [
        ['/api/v1/deactivate', keyOf(free), machineOf(free, MACHINES_PER_LICENSE - 1)],
        ['/api/v1/activate', keyOf(free), machine],
      ]
    }
    default:
      return kind satisfies never
  }
}
