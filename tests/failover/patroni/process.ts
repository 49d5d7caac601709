/**
 * Runs a program, and sends signals to it and all its descendants. Patroni detaches the Postgres that it starts, so the process
 * id of Postgres is read from the data folder.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'

const MAX_OUTPUT = 100_000

export interface ProcessOptions {
  readonly cwd: string
  readonly env?: Record<string, string>
  readonly uid?: number
  readonly gid?: number
  /** The file whose first line is the id of an additional process. The file may be missing. */
  readonly pidFile?: string
}

export class Process {
  readonly #child: ChildProcess
  readonly #pidFile: string | null
  #output = ''
  /** The processes that `signalAll` has stopped. */
  #stopped: readonly number[] = []
  readonly ended: Promise<unknown>

  constructor(program: string, args: readonly string[], { pidFile, ...options }: ProcessOptions) {
    this.#pidFile = pidFile ?? null
    this.#child = spawn(program, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
    this.ended = once(this.#child, 'exit').catch(() => undefined)
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on('data', (chunk: Buffer) => {
        this.#output = `${this.#output}${chunk.toString()}`.slice(-MAX_OUTPUT)
      })
  }

  output(): string {
    return this.#output
  }

  /** Sends a signal to the program and all its descendants, the program first. */
  async signalAll(signal: 'SIGSTOP' | 'SIGCONT' | 'SIGKILL'): Promise<void> {
    const family = signal === 'SIGCONT' ? this.#stopped : await this.#family()
    this.#stopped = signal === 'SIGSTOP' ? family : []
    for (const one of family)
      try {
        process.kill(one, signal)
      } catch {
        // The process has ended.
      }
  }

  async #family(): Promise<number[]> {
    const { pid, exitCode, signalCode } = this.#child
    const own = pid === undefined || exitCode !== null || signalCode !== null ? [] : [pid]
    const text = this.#pidFile === null ? '' : await readFile(this.#pidFile, 'utf8').catch(() => '')
    const detached = Number(text.split('\n', 1)[0])
    return familyOf([...own, ...(detached > 1 ? [detached] : [])])
  }

  /** Kills the program and its descendants. Resolves when the program has ended. */
  async kill(): Promise<void> {
    await this.signalAll('SIGKILL')
    await this.ended
  }
}

/** Returns the processes and their descendants, parents first. */
async function familyOf(roots: readonly number[]): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const parents = new Map(await Promise.all(pids.map(async (one) => [one, await parentOf(one)] as const)))
  const family = [...roots]
  for (const member of family) family.push(...pids.filter((one) => parents.get(one) === member))
  return family
}

async function parentOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  return Number(/^PPid:\s+(\d+)/m.exec(status)?.[1])
}
