// Makes the data folder of a cluster. It appears whole or not at all: `initdb` works beside it and a rename puts it
// in place, so that a start that is killed half-way leaves nothing that looks like a cluster.

import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { chown, mkdir, realpath, rename, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'

import { type Account, exists } from './binaries.ts'

const run = promisify(execFile)

/** Nothing of the caller's environment (PGPORT, PGOPTIONS, a locale) may change what Postgres does. */
export const ENVIRONMENT = { PATH: process.env['PATH'] ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' }

/**
 * How a program that runs in the folder names it. The unprivileged account of root could not walk there through folders
 * that are closed to others; a process always reaches its own working directory.
 */
export function nameFromInside(folder: string, account: Account | null): string {
  return account !== null && process.platform === 'linux' ? '/proc/self/cwd' : folder
}

/** Returns the real path of the cluster's folder, which is created when it is missing. */
export async function prepareDataFolder(
  dataFolder: string,
  binaries: string,
  account: Account | null,
): Promise<string> {
  const folder = resolve(dataFolder)
  if (await exists(join(folder, 'PG_VERSION'))) return await realpath(folder)
  await mkdir(dirname(folder), { recursive: true })
  const unfinished = `${folder}.${randomUUID()}`
  await mkdir(unfinished, { mode: 0o700 })
  if (account !== null) await chown(unfinished, account.uid, account.gid)
  try {
    await initialize(binaries, unfinished, account)
    await rename(unfinished, folder)
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true })
    if (!(await exists(join(folder, 'PG_VERSION')))) throw error // else another start was faster
  }
  return await realpath(folder)
}

async function initialize(binaries: string, folder: string, account: Account | null): Promise<void> {
  const locale = ['--encoding=UTF8', '--no-locale', '--locale-provider=builtin', '--builtin-locale=C.UTF-8']
  const args = [
    '-D',
    nameFromInside(folder, account),
    '-U',
    'postgres',
    '-A',
    'trust',
    '--no-sync',
    '--no-instructions',
    ...locale,
  ]
  try {
    await run(join(binaries, 'bin', 'initdb'), args, { cwd: folder, env: ENVIRONMENT, ...account })
  } catch (error) {
    const said = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : String(error)
    throw new Error(`Postgres could not make its data folder ${folder}: ${said}`, { cause: error })
  }
}
