// Looks for a Postgres that already runs on a data folder. Postgres itself never lets two run on the same data; this
// decides what to do about the first: one whose starter still lives is in use, one whose starter was killed is stopped.

import { execFile } from 'node:child_process'
import { readFile, readlink, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Lets an orphan that is already on its way down, or the guard that brings it down, finish. */
const GRACE_MS = 2_000
const SHUTDOWN_MS = 20_000

/** The file in which a starter notes its guard, the parent of the postmaster. */
export const GUARD_FILE = 'keyward-guard.pid'

export interface PostmasterState {
  readonly pid: number
  readonly port: number
  readonly ready: boolean
}

/** What `postmaster.pid` says, or null without one. Its lines: pid, folder, start, port, socket, address, shared memory, state. */
export async function readPostmaster(folder: string): Promise<PostmasterState | null> {
  const text = await readFile(join(folder, 'postmaster.pid'), 'utf8').catch(() => '')
  const lines = text.split('\n')
  const pid = Number(lines[0])
  if (!Number.isInteger(pid) || pid <= 0) return null
  return { pid, port: Number(lines[3]), ready: lines[7]?.trim() === 'ready' }
}

/** Returns when no Postgres runs on the folder; throws when one is in use by another starter, or does not stop. */
export async function clearSurvivor(folder: string): Promise<void> {
  const found = await readPostmaster(folder)
  if (found === null) return
  const guard = Number(await readFile(join(folder, GUARD_FILE), 'utf8').catch(() => 'NaN'))
  const guarded = async () => (await describe(found.pid))?.parent === guard
  if ((await guarded()) && !(await goneWithin(found.pid, folder, GRACE_MS)) && (await guarded()))
    throw new Error(`Postgres (process ${found.pid}) already runs on ${folder} for another start; stop that one first`)
  await stop(found.pid, folder)
  await rm(join(folder, 'postmaster.pid'), { force: true }) // a pid that another program has now
}

/** Ends a postmaster: first as `pg_ctl stop` does, at last without waiting for its clients. */
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
        throw new Error(`Postgres (process ${pid}) on ${folder} belongs to another user`, { cause: error })
    }
    if (await goneWithin(pid, folder, waitMs)) return
  }
  throw new Error(`Postgres (process ${pid}) on ${folder} does not stop`)
}

async function goneWithin(pid: number, folder: string, waitMs: number): Promise<boolean> {
  for (let waited = 0; waited < waitMs; waited += 20) {
    if (!(await runsOn(pid, folder))) return true
    await sleep(20)
  }
  return !(await runsOn(pid, folder))
}

/** Whether the process is a postmaster of this folder, and not one that got a dead postmaster's number. */
async function runsOn(pid: number, folder: string): Promise<boolean> {
  const found = await describe(pid)
  return found !== null && found.command.includes('postgres') && (found.at === folder || found.command.includes(folder))
}

/** The process's parent, its command line and, on Linux, its working directory, which is the data folder of a postmaster. */
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
