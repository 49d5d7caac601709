/**
 * One service as a child process. It tells over IPC where it listens, and it stops by itself when this process is gone.
 * What it says on standard error before that is the reason why it could not start.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import { LAUNCH } from '@keyward/process'
import { z } from 'zod'

export interface Service {
  readonly pid: number
  readonly port: number
  readonly adminPort: number
  /** Resolves when it has ended, whoever ended it. */
  readonly ended: Promise<void>
  readonly stop: () => Promise<void>
}

export type ServiceName = 'validator' | 'management'

const START_MS = 30_000
/** Longer than a service allows itself for its own stop. */
const STOP_MS = 20_000

const Listening = z.object({ type: z.literal('listening'), port: z.number(), adminPort: z.number() })

/** Resolves when the service listens; rejects with what it said when it ends before. */
export async function startService(name: ServiceName, env: Record<string, string | undefined>): Promise<Service> {
  const main = fileURLToPath(new URL(`../../services/${name}/src/main.ts`, import.meta.url))
  // In a process group of its own: Ctrl-C reaches the starter alone, which stops things in order.
  const launch = LAUNCH[name]
  const child = fork(main, {
    execArgv: [...process.execArgv, ...launch.nodeArguments],
    env: { ...launch.env, ...env },
    stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
    detached: true,
  })
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve())
    child.once('error', () => resolve())
  })
  const stop = (): Promise<void> => stopChild(child, ended)
  try {
    const { port, adminPort } = await listening(child, name)
    return { pid: child.pid ?? 0, port, adminPort, ended, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

function listening(child: ChildProcess, name: string): Promise<z.infer<typeof Listening>> {
  return new Promise((resolve, reject) => {
    let said = ''
    const keep = (chunk: Buffer): void => void (said += chunk.toString())
    child.stderr?.on('data', keep)
    const late = setTimeout(() => reject(new Error(`The ${name} did not start within ${START_MS} ms`)), START_MS)
    child.once('error', (error) => reject(error))
    child.once('close', (code, signal) => {
      clearTimeout(late)
      reject(new Error(said.trim() || `The ${name} ended at its start (${signal ?? `exit code ${code}`})`))
    })
    child.on('message', (message) => {
      const announced = Listening.safeParse(message)
      if (!announced.success) return
      clearTimeout(late)
      child.stderr?.off('data', keep)
      process.stderr.write(said)
      child.stderr?.pipe(process.stderr, { end: false })
      resolve(announced.data)
    })
  })
}

async function stopChild(child: ChildProcess, ended: Promise<void>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  const late = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
  await ended
  clearTimeout(late)
}

/** Resolves when `/readyz` of the admin port says so; rejects with its reasons after `limitMs`. */
export async function untilReady(name: string, adminPort: number, limitMs = START_MS): Promise<void> {
  const startedAt = performance.now()
  let reasons = 'no answer'
  while (performance.now() - startedAt < limitMs) {
    try {
      const response = await fetch(`http://127.0.0.1:${adminPort}/readyz`)
      if (response.ok) return
      reasons = await response.text()
    } catch {
      reasons = 'no answer'
    }
    await sleep(10)
  }
  throw new Error(`The ${name} is not ready: ${reasons}`)
}
