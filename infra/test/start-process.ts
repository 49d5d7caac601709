/** Runs `npm start` as a child process in a temporary folder, on ports that the system chooses. */

import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { z } from 'zod'

import { type DemoFile, demoFileSchema } from '../start/state.ts'
import { familyOf, type RunningProcess } from './processes.ts'

const MAIN = fileURLToPath(new URL('../start/main.ts', import.meta.url))
const PORTS = ['GATEWAY', 'VALIDATOR', 'VALIDATOR_ADMIN', 'MANAGEMENT', 'MANAGEMENT_ADMIN'].map(
  (name) => `KEYWARD_${name}_PORT`,
)

export class StartProcess {
  readonly child: ChildProcess
  readonly ended: Promise<unknown>
  output = ''
  errors = ''
  readonly #home: string

  /**
   * Starts the process. `through` contains Node arguments that run a wrapper of the process, as npm would. `main` is another program that
   * starts Keyward.
   */
  constructor(home: string, env: Record<string, string> = {}, through: string[] = [], main = MAIN) {
    this.#home = home
    const inherited = Object.entries(process.env).filter(([name]) => !/DATABASE_URL|NODE_|VITEST|KEYWARD/.test(name))
    this.child = spawn(process.execPath, [...through, main], {
      cwd: home,
      env: {
        ...Object.fromEntries(inherited),
        ...Object.fromEntries(PORTS.map((name) => [name, '0'])),
        KEYWARD_VALIDATOR_WORKERS: '1',
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.child.stdout?.on('data', (chunk: Buffer) => (this.output += chunk.toString()))
    this.child.stderr?.on('data', (chunk: Buffer) => (this.errors += chunk.toString()))
    this.ended = once(this.child, 'close')
  }

  /** Resolves when the ready message is printed. Rejects if the process ends earlier. */
  async ready(): Promise<void> {
    await Promise.race([
      this.ended,
      new Promise<void>((resolve) => {
        const look = (): void => {
          if (this.output.includes('Stop with Ctrl-C')) resolve()
        }
        this.child.stdout?.on('data', look)
        look()
      }),
    ])
    if (this.child.exitCode !== null) throw new Error(`The start ended: ${this.errors}`)
  }

  /** Returns the process, its services and its Postgres. */
  family(): RunningProcess[] {
    return familyOf(this.child.pid ?? 0)
  }

  member(part: 'validator' | 'management' | 'postgres'): RunningProcess {
    const found = this.family().find(({ command }) =>
      part === 'postgres' ? /^\S*\/postgres -D/.test(command) : command.includes(`services/${part}/`),
    )
    if (!found) throw new Error(`There is no ${part}`)
    return found
  }

  async demo(): Promise<DemoFile> {
    return demoFileSchema.strict().parse(JSON.parse(await readFile(join(this.#home, '.keyward', 'demo.json'), 'utf8')))
  }

  /** Returns the `curl` commands of the ready message, in order. */
  curlLines(): string[] {
    return this.output.split('\n').flatMap((line) => (line.startsWith('  curl ') ? [line.trim()] : []))
  }

  async end(signal: NodeJS.Signals): Promise<number | null> {
    this.child.kill(signal)
    await this.ended
    return this.child.exitCode
  }
}

/** Sends the request of a printed `curl` command. */
export async function runCurl(line: string): Promise<{ status: number; body: Record<string, unknown> }> {
  const url = /^curl (?:-X DELETE )?(\S+)/.exec(line)?.[1] ?? ''
  const headers = [...line.matchAll(/-H '([^:]+): ([^']*)'/g)].map(([, name = '', value = '']): [string, string] => [
    name,
    value,
  ])
  const body = / -d '(.*)'$/.exec(line)?.[1]
  const response = await fetch(
    url,
    body === undefined ? { method: 'DELETE', headers } : { method: 'POST', headers, body },
  )
  const text = await response.text()
  return { status: response.status, body: z.record(z.string(), z.unknown()).parse(JSON.parse(text || '{}')) }
}
