/**
 * Runs a load generator as a separate process, which sends the requests of the quiet organization or of the attackers. The process of the
 * quiet organization has a higher priority than the services, and that of the attackers a lower one. The attackers therefore delay the
 * services only by their requests, and the measured times contain no delays of the quiet organization's process.
 */

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setPriority } from 'node:os'
import { fileURLToPath } from 'node:url'

import { z } from 'zod'

import { ATTACKS } from './attacks.ts'
import { KINDS, measure, type Measured } from './victim.ts'
import { type World, worldSchema } from './world.ts'

const FIRST = -15
const LAST = 19

const command = z.discriminatedUnion('type', [
  z.object({ type: z.literal('measure'), world: worldSchema, forMs: z.number() }),
  z.object({ type: z.literal('attack'), world: worldSchema, name: z.string() }),
  z.object({ type: z.literal('stop') }),
])
type Command = z.infer<typeof command>

const countsSchema = z.record(z.string(), z.number())
const measuredSchema = z.object({ durations: z.record(z.enum(KINDS), z.array(z.number())), errors: countsSchema })

export interface Generator {
  readonly pid: number
  /** Measures the quiet organization. */
  measure: (forMs: number) => Promise<Measured>
  /** Starts an attack. */
  attack: (name: string) => void
  /** Ends the attack. Resolves with the number of responses by status. */
  stop: () => Promise<Record<string, number>>
  end: () => void
}

export function startGenerator(role: 'victim' | 'attacker', world: World): Generator {
  const child = fork(fileURLToPath(import.meta.url), [role], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  const send = (message: Command): void => void child.send(message)
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`the ${role} ended with ${code}`)
  })
  ended.catch(() => undefined)
  const ask = async <T>(message: Command, schema: z.ZodType<T>): Promise<T> => {
    const response = new Promise<unknown>((resolve) => child.once('message', resolve))
    send(message)
    return schema.parse(await Promise.race([response, ended]))
  }
  return {
    pid: child.pid ?? 0,
    measure: (forMs) => ask({ type: 'measure', world, forMs }, measuredSchema),
    attack: (name) => send({ type: 'attack', world, name }),
    stop: () => ask({ type: 'stop' }, countsSchema),
    end: () => void child.kill(),
  }
}

function run(role: string): void {
  try {
    setPriority(role === 'victim' ? FIRST : LAST)
  } catch {
    console.error(
      'neighbours: cannot raise the priority of the quiet organization, so its figures include its own delays; run as root',
    )
  }
  let counts: Record<string, number> = {}
  let attacking = new AbortController()
  let running: Promise<unknown> = Promise.resolve()
  /** The number of steps by attack. It continues in the next run of the attack, so that the generated ids are new. */
  const steps = new Map<string, number>()

  const attack = async (world: World, name: string, signal: AbortSignal): Promise<void> => {
    const found = ATTACKS.find((one) => one.name === name)
    if (!found) throw new Error(`there is no attack "${name}"`)
    let n = steps.get(name) ?? 0
    const context = { world, count: (status: number) => void (counts[status] = (counts[status] ?? 0) + 1) }
    const repeat = async (): Promise<void> => {
      while (!signal.aborted) await found.step(context, n++)
    }
    await Promise.all(Array.from({ length: found.connections }, repeat))
    steps.set(name, n)
  }

  process.on('message', (message) => {
    const received = command.parse(message)
    switch (received.type) {
      case 'measure':
        void measure(received.world, received.forMs).then((measured) => process.send?.(measured))
        return
      case 'attack': {
        attacking = new AbortController()
        counts = {}
        running = attack(received.world, received.name, attacking.signal)
        return
      }
      case 'stop':
        attacking.abort()
        void running.then(() => process.send?.(counts))
        return
      default:
        received satisfies never
    }
  })
  process.once('disconnect', () => process.exit())
}

const [, file, role] = process.argv
if (file === fileURLToPath(import.meta.url) && role !== undefined) run(role)
