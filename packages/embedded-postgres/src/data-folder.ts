/**
 * Creates the data folder of Postgres atomically: `initdb` works in a temporary folder that is then renamed. An interrupted
 * start leaves no incomplete data folder.
 */

import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { chown, mkdir, realpath, rename, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'

import { type Account, exists } from './binaries.ts'

const run = promisify(execFile)

/** The environment of Postgres. The caller's environment is excluded, because its PGPORT, PGOPTIONS or locale would change the behavior. */
export const ENVIRONMENT = { PATH: process.env['PATH'] ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' }

/**
 * Returns a path of the folder for a program whose working directory is the folder. The unprivileged account may lack access to the folders
 * above, but a process can always access its working directory.
 */
export function pathFromInside(folder: string, account: Account | null): string {
  return account !== null && process.platform === 'linux' ? '/proc/self/cwd' : folder
}

/** Returns the path of the file with the superuser's password, which is beside the data folder. */
export function passwordFile(folder: string): string {
  return `${folder}.password`
}

/** Returns the real path of the data folder. Creates it if it does not exist. */
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
    await rm(passwordFile(folder), { force: true }) // the password of a deleted data folder
    await rename(unfinished, folder)
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true })
    if (!(await exists(join(folder, 'PG_VERSION')))) throw error // a concurrent start may have created the folder
  }
  return await realpath(folder)
}

async function initialize(binaries: string, folder: string, account: Account | null): Promise<void> {
  const locale = ['--encoding=UTF8', '--no-locale', '--locale-provider=builtin', '--builtin-locale=C.UTF-8']
  const args = [
    '-D',
    pathFromInside(folder, account),
    '-U',
    'postgres',
    '-A',
    'reject', // until the password is set
    '--no-sync',
    '--no-instructions',
    ...locale,
  ]
  try {
    await run(join(binaries, 'bin', 'initdb'), args, { cwd: folder, env: ENVIRONMENT, ...account })
  } catch (error) {
    const reason = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : String(error)
    throw new Error(`Postgres could not create its data folder ${folder}: ${reason}`, { cause: error })
  }
}
