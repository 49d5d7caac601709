/**
 * Runs a load generator as a separate process, which sends the requests of the quiet organization or of the attackers. The process of the
 * quiet organization has a higher priority than the services, and that of the attackers a lower one. The attackers therefore delay the
 * services only by their requests, and the measured times contain no delays of the quiet organization's process.
 */

import { fork } from 'node:child_process'
import { setPriority } from 'node:os'
import { fileURLToPath } from 'node:url'

import { z } from 'zod'

import { ATTACKS } from './attacks.ts'
import { CONTROLS } from './controls.ts'
import { KINDS, measure, type Measured } from './victim.ts'
import { type World, worldSchema } from './world.ts'

const FIRST = -15
const LAST = 19

const command = z.discriminatedUnion('type', [
  z.object({ type: z.literal('begin'), world: worldSchema }),
  z.object({ type: z.literal('measure'), forMs: z.number() }),
  z.object({ type: z.literal('attack'), names: z.array(z.string()), share: z.number() }),
  z.object({ type: z.literal('stop') }),
])
type Command = z.infer<typeof command>

const numbers = z.array(z.number())
const measuredSchema = z.object({
  durations: z.record(z.enum(KINDS), numbers),
  errors: z.record(z.string(), z.number()),
})
const countsSchema = z.record(z.string(), z.number())

export interface Generator {
  readonly pid: number
  /** Measures the quiet organization. */
  measure: (forMs: number) => Promise<Measured>
  /** Starts attacks. Each attack uses this share of its connections. */
  attack: (names: readonly string[], share: number) => void
  /** Ends the attacks. Resolves with the number of responses by status. */
  stop: () => Promise<Record<string, number>>
  end: () => void
}

export function startGenerator(role: 'victim' | 'attacker', world: World): Generator {
  const child = fork(fileURLToPath(import.meta.url), [role], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  const tell = (message: Command): void => void child.send(message)
  const next = async (): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const onExit = (code: number | null): void => reject(new Error(`the ${role} ended with ${code}`))
      child.once('exit', onExit)
      child.once('message', (message) => {
        child.off('exit', onExit)
        resolve(message)
      })
    })
  const ask = async <T>(message: Command, schema: z.ZodType<T>): Promise<T> => {
    tell(message)
    return schema.parse(await next())
  }
  tell({ type: 'begin', world })
  return {
    pid: child.pid ?? 0,
    measure: (forMs) => ask({ type: 'measure', forMs }, measuredSchema),
    attack: (names, share) => tell({ type: 'attack', names: [...names], share }),
    stop: () => ask({ type: 'stop' }, countsSchema),
    end: () => void child.kill(),
  }
}

/** Sets the priority of this process. Raising it needs root. */
function setOwnPriority(role: string): void {
  try {
    setPriority(role === 'victim' ? FIRST : LAST)
  } catch {
    console.error(
      'neighbours: cannot raise the priority of the quiet organization, so its figures include its own delays; run as root',
    )
  }
}

function run(role: string): void {
  setOwnPriority(role)
  let world: World | null = null
  let counts: Record<string, number> = {}
  /** The controller that ends the current attacks. */
  let attacking = new AbortController()
  let running: Promise<unknown> = Promise.resolve()
  const steps = new Map<string, number>()

  const attack = async (name: string, share: number, to: World, signal: AbortSignal): Promise<void> => {
    const found = [...CONTROLS, ...ATTACKS].find((one) => one.name === name)
    if (!found) throw new Error(`there is no attack "${name}"`)
    // Continues the numbers of the last run of this attack, so that its generated ids are new.
    let n = steps.get(name) ?? 0
    const context = { world: to, count: (status: number) => void (counts[status] = (counts[status] ?? 0) + 1) }
    const repeat = async (): Promise<void> => {
      while (!signal.aborted) await found.step(context, n++)
      steps.set(name, n)
    }
    await Promise.all(Array.from({ length: Math.max(1, Math.round(found.connections * share)) }, repeat))
  }

  process.on('message', (message) => {
    const received = command.parse(message)
    switch (received.type) {
      case 'begin':
        world = received.world
        return
      case 'measure':
        if (world) void measure(world, received.forMs).then((measured) => process.send?.(measured))
        return
      case 'attack': {
        const to = world
        if (!to) return
        attacking = new AbortController()
        counts = {}
        running = Promise.all(received.names.map((name) => attack(name, received.share, to, attacking.signal)))
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
