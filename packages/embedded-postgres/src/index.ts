/**
 * Starts a Postgres server from an npm package, with a random password, on the loopback address only. Any user, even root, can start it.
 * The parent of the server is a guard process. When the program that started the server ends, even by SIGKILL, the guard's standard input
 * closes and the guard shuts the server down.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

import { accountToUse, findBinaries } from './binaries.ts'
import { ENVIRONMENT, pathFromInside, prepareDataFolder } from './data-folder.ts'
import { GUARD_FILE, readPostmaster, stop, stopOrphan } from './orphan.ts'
import { ensurePassword } from './password.ts'

interface PostgresOptions {
  /** The path of the data folder. It is created with its parents if it does not exist. */
  readonly dataFolder: string
  /** The port, by default a free port below 32768, which is outside the range of outgoing connections. */
  readonly port?: number
  /** Server settings, as on the command line: `{ max_connections: 50 }`. */
  readonly settings?: Readonly<Record<string, string | number>>
  /** A callback that receives each line of the server's log. */
  readonly onLog?: (line: string) => void
}

export interface RunningPostgres {
  /** The connection string of the superuser. It contains the password that the file `DATA_FOLDER.password` stores. */
  readonly url: string
  readonly port: number
  /** The process id of the postmaster. */
  readonly pid: number
  /** Resolves when the server has ended, with or without a call of `stop`. */
  readonly ended: Promise<void>
  readonly stop: () => Promise<void>
}

const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // A failing statement can contain values of a request, which must not be logged.
  log_min_error_statement: 'panic',
  log_parameter_max_length_on_error: 0,
}

// A shell without job control connects the standard input of background processes to /dev/null, so the guard reads descriptor 3.
// Core dumps are off, because they would contain data.
const GUARD = `ulimit -c 0
exec 3<&0
"$@" 3<&- & server=$!
{ read -r _ <&3; kill -INT $server; } 2>/dev/null & watch=$!
exec 3<&-
wait $server; code=$?
kill $watch 2>/dev/null
exit $code`

const START_MS = 60_000

/**
 * Starts Postgres on a data folder and resolves when it accepts connections. First stops an orphan: a server that still runs on the folder
 * although its parent was killed. Rejects when another program uses the folder or when the server does not start.
 */
export async function startPostgres(options: PostgresOptions): Promise<RunningPostgres> {
  const account = accountToUse()
  const binaries = await findBinaries(account)
  const folder = await prepareDataFolder(options.dataFolder, binaries, account)
  await stopOrphan(folder)
  const password = await ensurePassword(folder, binaries, account)
  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await freePort())
    const settings = Object.entries({ ...SETTINGS, port, ...options.settings }).flatMap(([k, v]) => ['-c', `${k}=${v}`])
    const command = [join(binaries, 'bin', 'postgres'), '-D', pathFromInside(folder, account), ...settings]
    const guard = spawn('/bin/sh', ['-c', GUARD, 'keyward-postgres-guard', ...command], {
      cwd: folder,
      env: ENVIRONMENT,
      stdio: ['pipe', 'ignore', 'pipe'],
      detached: true, // Ctrl-C reaches only the parent, which stops its children in order
      ...account,
    })
    try {
      return await untilReady(guard, folder, { port, password }, options.onLog)
    } catch (error) {
      if (options.port !== undefined || attempt === 5 || !String(error).includes('in use')) throw error
    }
  }
}

async function untilReady(
  guard: ChildProcess,
  folder: string,
  { port, password }: { port: number; password: string },
  onLog: ((line: string) => void) | undefined,
): Promise<RunningPostgres> {
  const lastLines: string[] = []
  const server = { hasEnded: false }
  const ended = new Promise<void>((resolve) => {
    guard.once('error', (error) => {
      lastLines.push(error.message)
      resolve()
    })
    guard.once('close', () => resolve())
  }).then(() => void (server.hasEnded = true))
  guard.stdin?.on('error', () => undefined) // errors of writes after the end of the guard
  if (guard.stderr !== null)
    createInterface(guard.stderr).on('line', (line) => {
      onLog?.(line)
      if (lastLines.push(line) > 20) lastLines.shift()
    })
  await writeFile(join(folder, GUARD_FILE), String(guard.pid))
  for (
    const startedAt = performance.now();
    !server.hasEnded && performance.now() - startedAt < START_MS;
    await sleep(15)
  ) {
    const found = await readPostmaster(folder)
    if (found?.ready !== true || found.port !== port) continue
    const close = async (): Promise<void> => {
      guard.stdin?.end()
      const timeout = setTimeout(() => void stop(found.pid, folder).catch(() => undefined), START_MS / 4)
      await ended
      clearTimeout(timeout)
    }
    const url = `postgres://postgres:${password}@127.0.0.1:${port}/postgres`
    return { url, port, pid: found.pid, ended, stop: close }
  }
  guard.stdin?.end()
  await ended
  const reasons = lastLines.filter((line) => /FATAL|ERROR|HINT|DETAIL|could not/.test(line))
  throw new Error(`Postgres did not start on port ${port}: ${(reasons.length > 0 ? reasons : lastLines).join(' ')}`)
}

/** Returns a port of 127.0.0.1 from 10240 to 32767 that is currently free. */
async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 50; attempt++) {
    const port = 10_240 + Math.floor(Math.random() * (32_768 - 10_240))
    const free = await new Promise<boolean>((resolve) => {
      const probe = createServer()
      probe.once('error', () => resolve(false))
      probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
    })
    if (free) return port
  }
  throw new Error('No port from 10240 to 32767 is free for Postgres. Pass a free port in the option "port".')
}
