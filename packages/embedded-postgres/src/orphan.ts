/**
 * Handles a Postgres server that already runs on a data folder. Invariant: at most one server runs on a data folder. A server whose parent
 * still runs is in use. A server whose parent was killed is an orphan, and is stopped.
 */

import { execFile } from 'node:child_process'
import { readFile, readlink, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** The maximum wait for the end of a server whose guard still runs. The guard may already be stopping the server. */
const GRACE_MS = 2_000
const SHUTDOWN_MS = 20_000

/** The file with the process id of the guard, which is the parent of the postmaster. */
export const GUARD_FILE = 'keyward-guard.pid'

interface PostmasterState {
  readonly pid: number
  readonly port: number
  readonly ready: boolean
}

/**
 * Reads `postmaster.pid`. Returns null if the file contains no pid or does not exist. The lines of the file are pid, folder, start time,
 * port, socket, address, shared memory and state.
 */
export async function readPostmaster(folder: string): Promise<PostmasterState | null> {
  const text = await readFile(join(folder, 'postmaster.pid'), 'utf8').catch(() => '')
  const lines = text.split('\n')
  const pid = Number(lines[0])
  if (!Number.isInteger(pid) || pid <= 0) return null
  return { pid, port: Number(lines[3]), ready: lines[7]?.trim() === 'ready' }
}

/** Stops an orphan on the folder. Rejects when another program uses the folder, or when the orphan does not stop. */
export async function stopOrphan(folder: string): Promise<void> {
  const found = await readPostmaster(folder)
  if (found === null) return
  const guard = Number(await readFile(join(folder, GUARD_FILE), 'utf8').catch(() => 'NaN'))
  const isGuarded = async () => (await describe(found.pid))?.parent === guard
  if ((await isGuarded()) && !(await endsWithin(found.pid, folder, GRACE_MS)) && (await isGuarded()))
    throw new Error(
      `Postgres (process ${found.pid}) already runs on ${folder} for another program. Stop that program first.`,
    )
  await stop(found.pid, folder)
  await rm(join(folder, 'postmaster.pid'), { force: true }) // its pid may belong to another program now
}

/** Stops a postmaster with SIGINT, as `pg_ctl stop` does, and after 10 s with SIGQUIT. */
export async function stop(pid: number, folder: string): Promise<void> {
  for (const [signal, waitMs] of [
    ['SIGINT', SHUTDOWN_MS / 2],
    ['SIGQUIT', SHUTDOWN_MS / 2],
  ] as const) {
    if (!(await runsOn(pid, folder))) return
    try {
      process.kill(pid, signal)
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'EPERM')
        throw new Error(`Postgres (process ${pid}) on ${folder} belongs to another user. Stop it as that user.`, {
          cause: error,
        })
    }
    if (await endsWithin(pid, folder, waitMs)) return
  }
  throw new Error(`Postgres (process ${pid}) on ${folder} did not stop after SIGINT and SIGQUIT. Stop it manually.`)
}

async function endsWithin(pid: number, folder: string, waitMs: number): Promise<boolean> {
  for (let waited = 0; waited < waitMs; waited += 20) {
    if (!(await runsOn(pid, folder))) return true
    await sleep(20)
  }
  return !(await runsOn(pid, folder))
}

/** Returns whether the process is the postmaster of this folder, and not another program that reuses its pid. */
async function runsOn(pid: number, folder: string): Promise<boolean> {
  const found = await describe(pid)
  return found !== null && found.command.includes('postgres') && (found.at === folder || found.command.includes(folder))
}

/** Returns the parent, the command line and, on Linux, the working directory of a process. A postmaster runs in its data folder. */
async function describe(pid: number): Promise<{ parent: number; command: string; at: string | null } | null> {
  try {
    if (process.platform === 'linux') {
      const status = await readFile(`/proc/${pid}/status`, 'utf8')
      if (/^State:\s+Z/m.test(status)) return null
      const command = await readFile(`/proc/${pid}/cmdline`, 'utf8')
      return { parent: Number(/^PPid:\s+(\d+)/m.exec(status)?.[1]), command, at: await readlink(`/proc/${pid}/cwd`) }
    }
    const { stdout } = await run('ps', ['-o', 'ppid=,command=', '-p', String(pid)])
    const match = /^\s*(\d+)\s+(.*)$/s.exec(stdout)
    return match === null ? null : { parent: Number(match[1]), command: match[2] ?? '', at: null }
  } catch {
    return null
  }
}
