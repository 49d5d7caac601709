/**
 * Runs the child processes of a bench. A child of `startChild` has an IPC channel and ends when the channel closes, so it does not outlive
 * this program. `stopChildren` stops all children.
 */

import { spawn, type ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'

import { z } from 'zod'

export interface Child {
  pid: number
  port: number
  /** The admin port, or 0 without one. */
  adminPort: number
  /** The last lines of the output. */
  lines: string[]
  /** The time from the spawn of the child to its message `listening`. */
  startedMs: number
  /** Sends a message over the IPC channel. */
  send: (message: string) => void
  stop: () => Promise<void>
}

/** The arguments of Node and the environment variables with which the product starts a program. */
interface Launch {
  readonly nodeArguments: readonly string[]
  readonly env: Record<string, string>
}

interface ChildOptions {
  /** The path of the program, which runs with the Node of this process. */
  file: string
  nodeArguments?: readonly string[]
  env?: Record<string, string>
  launch?: Launch
  /** The words before the command, such as `taskset -c 0`. */
  prefix?: readonly string[]
}

const PLAIN: Launch = { nodeArguments: [], env: {} }
const KEPT_LINES = 40
const START_LIMIT_MS = 300_000
const STOP_LIMIT_MS = 20_000

const listening = z.object({ type: z.literal('listening'), port: z.number(), adminPort: z.number().default(0) })

const running = new Set<ChildProcess>()

/**
 * Starts a program and resolves when it listens. Rejects with the last lines of output if the program ends earlier. Also rejects if it does
 * not listen within five minutes.
 */
export async function startChild(options: ChildOptions): Promise<Child> {
  const started = performance.now()
  const { prefix = [], nodeArguments = [], launch = PLAIN } = options
  const [command, ...rest] = [...prefix, process.execPath, ...launch.nodeArguments, ...nodeArguments, options.file]
  const child = spawn(command, rest, {
    env: { PATH: process.env['PATH'] ?? '', NODE_ENV: 'production', ...launch.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  running.add(child)
  const lines: string[] = []
  const keep = (line: string): void => {
    lines.push(line)
    if (lines.length > KEPT_LINES) lines.shift()
  }
  for (const stream of [child.stdout, child.stderr]) if (stream !== null) createInterface(stream).on('line', keep)
  child.once('exit', () => running.delete(child))
  const ports = await new Promise<z.infer<typeof listening>>((resolve, reject) => {
    const late = setTimeout(
      () => reject(new Error(`${options.file} did not listen within ${START_LIMIT_MS} ms`)),
      START_LIMIT_MS,
    )
    child.once('error', reject)
    child.once('exit', () => {
      clearTimeout(late)
      reject(new Error(`${options.file} ended: ${lines.slice(-10).join('\n')}`))
    })
    child.on('message', (message) => {
      const parsed = listening.safeParse(message)
      if (!parsed.success) return
      clearTimeout(late)
      resolve(parsed.data)
    })
  })
  const { port, adminPort } = ports
  const startedMs = performance.now() - started
  const send = (message: string): void => void child.send(message)
  return { pid: child.pid ?? 0, port, adminPort, lines, startedMs, send, stop: () => stop(child) }
}

/** Stops all children that are still running. */
export async function stopChildren(): Promise<void> {
  await Promise.all([...running].map(stop))
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  child.kill('SIGTERM')
  const late = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS)
  await ended
  clearTimeout(late)
}
