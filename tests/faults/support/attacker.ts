/**
 * Sends the requests of a hostile organization at a fixed rate through many connections. This module runs in a separate thread,
 * so that it does not delay the victim's measurements. After a stop message, it posts the number of responses by status.
 */

import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { parentPort, Worker, workerData } from 'node:worker_threads'

import { send } from './client.ts'

export const ATTACKS = [
  'deactivations of invented machines',
  'activations and deactivations in turn',
  'new machines on full licenses',
  'new machines on licenses with free slots',
  'new machines on unlimited licenses',
  'long machine ids at full licenses',
] as const
export type AttackName = (typeof ATTACKS)[number]

/** Returns the n-th request of an attack. */
function requestOf(name: AttackName, licenseKey: string, n: number): { path: string; body: object } {
  const [activate, deactivate] = ['/api/v1/activate', '/api/v1/deactivate']
  switch (name) {
    case 'deactivations of invented machines':
      return { path: deactivate, body: { licenseKey, fingerprint: `x${n}` } }
    case 'activations and deactivations in turn': {
      const fingerprint = `m${Math.floor(n / 2) % 8}`
      return { path: n % 2 === 0 ? activate : deactivate, body: { licenseKey, fingerprint } }
    }
    case 'new machines on full licenses':
    case 'new machines on licenses with free slots':
    case 'new machines on unlimited licenses':
      return { path: activate, body: { licenseKey, fingerprint: `x${n}` } }
    case 'long machine ids at full licenses':
      return { path: activate, body: { licenseKey, fingerprint: String(n).padStart(500, 'x') } }
    default:
      return name satisfies never
  }
}

interface Target {
  name: AttackName
  port: number
  secret: string
  licenses: readonly string[]
  perSecond: number
  connections: number
}

export interface Attack {
  /** Stops the attack. Resolves with the number of responses by status. Status 0 counts requests without a response. */
  stop(): Promise<Record<number, number>>
}

export function startAttack(target: Target): Attack {
  const thread = new Worker(new URL(import.meta.url), { workerData: target })
  return {
    stop: async () => {
      const counts = new Promise<Record<number, number>>((resolve, reject) => {
        thread.once('message', resolve)
        thread.once('error', reject)
      })
      thread.postMessage('stop')
      return await counts
    },
  }
}

async function attack({ name, port, secret, licenses, perSecond, connections }: Target): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const counts: Record<number, number> = {}
  const state = { isOver: false }
  parentPort?.once('message', () => (state.isOver = true))
  const startedMs = performance.now()
  let sent = 0
  const work = async (): Promise<void> => {
    while (!state.isOver) {
      if (sent >= ((performance.now() - startedMs) / 1_000) * perSecond) {
        await sleep(5)
        continue
      }
      const n = sent++
      const { path, body } = requestOf(name, licenses[n % licenses.length] ?? '', n)
      const { status } = await send(port, path, { body, secret, agent })
      counts[status] = (counts[status] ?? 0) + 1
    }
  }
  await Promise.all(Array.from({ length: connections }, work))
  agent.destroy()
  parentPort?.postMessage(counts)
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only startAttack creates this thread
if (parentPort && workerData !== null) void attack(workerData as Target)
