/**
 * Runs a Postgres that a test can stop, crash, freeze, copy and fill up. Tests crash only the server and never the host, so
 * fsync is off. Every commit is still written to the file system before its confirmation.
 */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, cp, lchown, mkdtemp, readdir, readFile, readlink, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { createPool } from '@keyward/database'
import { migrate } from '@keyward/database/migrate'
import { type RunningPostgres, startPostgres } from '@keyward/embedded-postgres'
import { onServer, VALIDATOR_LOGIN, withDatabase } from '@keyward/testkit'

export type Settings = Record<string, string | number>

const SETTINGS: Settings = { fsync: 'off', full_page_writes: 'off', max_connections: 100 }

export class TestPostgres {
  readonly folder: string
  readonly #settings: Settings
  readonly logged: string[] = []
  #server: RunningPostgres | null = null
  #port = 0
  #password = ''
  /** The path of the server's program; empty before the first start. */
  program = ''

  constructor(folder: string, settings: Settings) {
    this.folder = folder
    this.#settings = settings
  }

  get port(): number {
    return this.#port
  }

  get url(): string {
    return `postgres://postgres:${this.#password}@127.0.0.1:${this.#port}/keyward`
  }

  get validatorUrl(): string {
    const url = new URL(this.url)
    url.username = VALIDATOR_LOGIN.user
    url.password = VALIDATOR_LOGIN.password
    return url.href
  }

  /** Starts the server, on the previous port if there is one. */
  async start(): Promise<void> {
    const port = this.#port === 0 ? {} : { port: this.#port }
    const settings = { ...SETTINGS, ...this.#settings }
    const onLog = (line: string): void => void this.logged.push(line)
    this.#server = await startPostgres({ dataFolder: join(this.folder, 'data'), settings, onLog, ...port })
    this.#port = this.#server.port
    this.#password = new URL(this.#server.url).password
    this.program = await readlink(`/proc/${this.#server.pid}/exe`)
  }

  /** Stops the server. `fast` closes connections and shuts down cleanly. After `immediate`, the next start recovers as after a crash. */
  async stop(how: 'fast' | 'immediate'): Promise<void> {
    const server = this.#server
    this.#server = null
    if (server === null) return
    if (how === 'immediate') process.kill(server.pid, 'SIGQUIT')
    await (how === 'fast' ? server.stop() : server.ended)
  }

  /** Suspends every process of the server. Connections stay open without responses. */
  async freeze(): Promise<void> {
    for (const pid of await this.#family()) kill(pid, 'SIGSTOP')
  }

  async thaw(): Promise<void> {
    for (const pid of (await this.#family()).toReversed()) kill(pid, 'SIGCONT')
  }

  /** Copies the data folder of the stopped server. */
  async copyTo(folder: string): Promise<void> {
    const data = join(this.folder, 'data')
    await cp(data, join(folder, 'data'), { recursive: true })
    const { uid, gid } = await stat(data)
    for (const path of ['', ...(await readdir(data, { recursive: true }))])
      await lchown(join(folder, 'data', path), uid, gid)
    await chmod(join(folder, 'data'), 0o700)
    await cp(`${data}.password`, join(folder, 'data.password'))
  }

  async remove(): Promise<void> {
    await this.thaw()
    await this.stop('fast')
    await rm(this.folder, { recursive: true, force: true })
  }

  async #family(): Promise<number[]> {
    const server = this.#server
    if (server === null) return []
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
    const parents = await Promise.all(pids.map(parentOf))
    return [server.pid, ...pids.filter((_, i) => parents[i] === server.pid)]
  }
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // The process has ended.
  }
}

async function parentOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  return Number(/^PPid:\s+(\d+)/m.exec(status)?.[1])
}

export async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'keyward-faults-'))
  await chmod(folder, 0o755) // As root, Postgres runs as another user.
  return folder
}

/** Starts a server with a migrated database and a login for validators. Creates `folder` if it is not given. */
export async function createPostgres(
  settings: Settings = {},
  folder?: string,
  migrated: (url: string) => Promise<unknown> = migrate,
): Promise<TestPostgres> {
  const postgres = new TestPostgres(folder ?? (await newFolder()), settings)
  await postgres.start()
  await onServer(withDatabase(postgres.url, 'postgres'), (client) => client.query('create database keyward'))
  await migrated(postgres.url)
  const { user, password } = VALIDATOR_LOGIN
  await onServer(postgres.url, (client) =>
    client.query(`create role ${user} login password '${password}' in role keyward_validator`),
  )
  return postgres
}

/** Returns a pool that ignores broken connections. */
export function openPool(url: string, max = 4): ReturnType<typeof createPool> {
  return createPool(url, { name: 'fault test', max, statementTimeoutMs: 60_000, connectTimeoutMs: 10_000 })
}

/** Returns the same address with the port of a proxy on this machine. */
export function through(url: string, port: number): string {
  const changed = new URL(url)
  changed.hostname = '127.0.0.1'
  changed.port = String(port)
  return changed.href
}

/**
 * Starts a standby without a primary on a copy of the data. The standby recovers the content of the copy and waits.
 * Resolves when it accepts connections at `url`. `select pg_promote()` makes it the primary of a new timeline.
 */
export async function startStandby(
  program: string,
  dataFolder: string,
  url: string,
): Promise<{ stop: () => Promise<void> }> {
  const { uid, gid } = await stat(dataFolder)
  await writeFile(join(dataFolder, 'standby.signal'), '')
  await chown(join(dataFolder, 'standby.signal'), uid, gid)
  const settings = { ...SETTINGS, port: new URL(url).port, listen_addresses: '127.0.0.1', unix_socket_directories: '' }
  const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const child = spawn(program, ['-D', dataFolder, ...args], { cwd: '/', stdio: 'ignore', uid, gid })
  const ended = once(child, 'exit')
  const answers = (): Promise<boolean> => onServer(url, () => Promise.resolve(true)).catch(() => false)
  while (!(await answers())) await sleep(20)
  return {
    stop: async () => {
      child.kill('SIGINT')
      await ended
    },
  }
}
