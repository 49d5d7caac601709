/** Sends the requests of the quiet organization at a fixed rate and measures each one. */

import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

import { send, type Sent } from './http.ts'
import type { World } from './world.ts'

export const KINDS = ['check', 'claim', 'release', 'read', 'write', 'evaluate', 'file'] as const
export type Kind = (typeof KINDS)[number]

/** The number of requests a second of each kind. */
const PACE: Readonly<Record<Kind, number>> = {
  check: 100,
  claim: 40,
  release: 10,
  read: 40,
  write: 15,
  evaluate: 10,
  file: 10,
}

export interface Measured {
  /** The duration of each request in milliseconds. */
  durations: Record<Kind, number[]>
  /** The number of unexpected responses by kind and status, such as `claim 503`. Responses with status 200 are counted by their text. */
  errors: Record<string, number>
}

const agent = new Agent({ keepAlive: true, maxSockets: 500 })
/** The number of requests so far, which makes the machine id of each claim unique. */
let counter = 0
const held: { licenseKey: string; fingerprint: string }[] = []

interface Request extends Omit<Sent, 'agent'> {
  /** Returns whether a status and a body are as expected. */
  isRight: (status: number, text: string) => boolean
}

function requestOf(kind: Kind, { quiet, validatorPort, managementPort }: World): Request | null {
  const n = counter++
  const onValidator = { port: validatorPort, secret: quiet.apiKey }
  const onManagement = { port: managementPort, secret: quiet.managementToken }
  const isOk = (status: number): boolean => status === 200 || status === 201
  switch (kind) {
    case 'check': {
      const body = JSON.stringify({ license: quiet.known, fingerprint: 'machine' })
      return { ...onValidator, path: '/api/v2/license/validate', body, isRight: isOk }
    }
    case 'claim': {
      const machine = { licenseKey: quiet.limited[n % quiet.limited.length]!, fingerprint: `machine ${n}` }
      held.push(machine)
      const isRight = (_status: number, text: string): boolean => text.includes('"valid":true')
      return { ...onValidator, path: '/api/v1/activate', body: JSON.stringify(machine), isRight }
    }
    case 'release': {
      // Releases a machine that was claimed about a second ago, so that its claim has ended.
      if (held.length < PACE.claim) return null
      const body = JSON.stringify(held.shift())
      const isRight = (_status: number, text: string): boolean => text.includes('"deactivated":true')
      return { ...onValidator, path: '/api/v1/deactivate', body, isRight }
    }
    case 'read':
      return { ...onManagement, method: 'GET', path: '/api/v1/products', isRight: isOk }
    case 'write': {
      const body = JSON.stringify({ name: `p${n}` })
      return { ...onManagement, method: 'PATCH', path: `/api/v1/products/${quiet.productId}`, body, isRight: isOk }
    }
    case 'evaluate': {
      const body = JSON.stringify({ licenseId: quiet.knownId, ip: '203.0.113.7', machineId: 'machine' })
      return { ...onManagement, path: '/api/v1/access-rules/evaluate', body, isRight: isOk }
    }
    case 'file': {
      const body = JSON.stringify({ licenseKey: quiet.known, fingerprint: 'machine' })
      const address = `203.0.${(n >> 8) & 255}.${n & 255}`
      const secret = quiet.apiKey
      return { port: managementPort, secret, path: '/api/v1/licenses/file', address, body, isRight: isOk }
    }
    default:
      return kind satisfies never
  }
}

/** Sends at the fixed rate for `forMs`, also while the services are slow. Resolves with the measurements. */
export async function measure(world: World, forMs: number): Promise<Measured> {
  const durations: Measured['durations'] = {
    check: [],
    claim: [],
    release: [],
    read: [],
    write: [],
    evaluate: [],
    file: [],
  }
  const errors: Record<string, number> = {}
  const one = async (kind: Kind): Promise<void> => {
    const request = requestOf(kind, world)
    if (request === null) return
    const startedMs = performance.now()
    const { status, text } = await send({ ...request, agent })
    durations[kind].push(performance.now() - startedMs)
    if (request.isRight(status, text)) return
    const error = `${kind} ${status === 200 ? text : status}`
    errors[error] = (errors[error] ?? 0) + 1
  }
  const running: Promise<void>[] = []
  const repeat = async (kind: Kind): Promise<void> => {
    const startedMs = performance.now()
    for (let n = 0; n < (forMs / 1_000) * PACE[kind]; n++) {
      await sleep(startedMs + (n * 1_000) / PACE[kind] - performance.now())
      running.push(one(kind))
    }
  }
  await Promise.all(KINDS.map(repeat))
  await Promise.all(running)
  return { durations, errors }
}
