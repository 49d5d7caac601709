/**
 * Runs a service as a child process. The service sends its ports over IPC and stops when this process ends. If the service ends before it
 * listens, its standard error output is reported as the reason.
 */

import { fork, type ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import { LAUNCH } from '@keyward/runtime'
import { z } from 'zod'

export interface ServiceProcess {
  readonly pid: number
  readonly port: number
  readonly adminPort: number
  /** The library with which the service serves HTTP. Undefined if the service always uses the same library. */
  readonly httpLibrary: string | undefined
  /** Resolves when the process has ended for any reason. */
  readonly ended: Promise<void>
  readonly stop: () => Promise<void>
}

export type ServiceName = 'validator' | 'management'

const START_MS = 30_000
/** The time after which a stopping service is killed. A service limits its own stop to a shorter time. */
const STOP_MS = 20_000

const listeningSchema = z.object({
  type: z.literal('listening'),
  port: z.number(),
  adminPort: z.number(),
  httpLibrary: z.string().optional(),
})

/** Starts a service and resolves when it listens. Rejects with the standard error output if the service ends earlier. */
export async function startService(
  name: ServiceName,
  env: Record<string, string | undefined>,
): Promise<ServiceProcess> {
  const main = fileURLToPath(new URL(`../../services/${name}/src/main.ts`, import.meta.url))
  // The child has a separate process group, so that Ctrl-C reaches only the parent, which stops its children in order.
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
    const { port, adminPort, httpLibrary } = await listening(child, name)
    return { pid: child.pid ?? 0, port, adminPort, httpLibrary, ended, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

function listening(child: ChildProcess, name: string): Promise<z.infer<typeof listeningSchema>> {
  return new Promise((resolve, reject) => {
    let errors = ''
    const collect = (chunk: Buffer): void => void (errors += chunk.toString())
    child.stderr?.on('data', collect)
    const timeout = setTimeout(() => reject(new Error(`The ${name} did not start within ${START_MS} ms`)), START_MS)
    child.once('error', (error) => reject(error))
    child.once('close', (code, signal) => {
      clearTimeout(timeout)
      reject(new Error(errors.trim() || `The ${name} ended before it listened (${signal ?? `exit code ${code}`})`))
    })
    child.on('message', (message) => {
      const announced = listeningSchema.safeParse(message)
      if (!announced.success) return
      clearTimeout(timeout)
      child.stderr?.off('data', collect)
      process.stderr.write(errors)
      child.stderr?.pipe(process.stderr, { end: false })
      resolve(announced.data)
    })
  })
}

async function stopChild(child: ChildProcess, ended: Promise<void>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  const timeout = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
  await ended
  clearTimeout(timeout)
}

/** Resolves when `/readyz` on the admin port returns 200. After `limitMs`, rejects with the reasons in the last response. */
export async function untilReady(name: string, adminPort: number, limitMs = START_MS): Promise<void> {
  const startedAt = performance.now()
  let reasons = 'no response'
  while (performance.now() - startedAt < limitMs) {
    try {
      const response = await fetch(`http://127.0.0.1:${adminPort}/readyz`)
      if (response.ok) return
      reasons = await response.text()
    } catch {
      reasons = 'no response'
    }
    await sleep(10)
  }
  throw new Error(`The ${name} is not ready: ${reasons}`)
}
