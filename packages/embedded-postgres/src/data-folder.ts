// Makes the data folder of a cluster. It appears whole or not at all: `initdb` works beside it and a rename puts it
// in place, so that a start that is killed half-way leaves nothing that looks like a cluster.

import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { chown, mkdir, realpath, rename, rm, symlink } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'

import { type Account, exists, othersMayRead, SHARED_FOLDER } from './binaries.ts'

const run = promisify(execFile)

/** Nothing of the caller's environment (PGPORT, PGOPTIONS, a locale) may change what Postgres does. */
export const ENVIRONMENT = { PATH: process.env['PATH'] ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' }

/**
 * Returns the real path of the cluster's folder, which is created when it is missing.
 *
 * When root asks for a folder that the unprivileged user cannot reach, the data lives in a shared place and the
 * folder that was asked for is a link to it. Removing the link is enough to start from nothing.
 */
export async function prepareDataFolder(
  dataFolder: string,
  binaries: string,
  account: Account | null,
): Promise<string> {
  const asked = resolve(dataFolder)
  if (await exists(join(asked, 'PG_VERSION'))) return await realpath(asked)
  await mkdir(dirname(asked), { recursive: true })
  const elsewhere = account !== null && !(await othersMayRead(dirname(asked)))
  const folder = elsewhere ? join(SHARED_FOLDER, `data-${randomUUID()}`) : asked
  const unfinished = `${folder}.${randomUUID()}`
  if (elsewhere) await mkdir(SHARED_FOLDER, { recursive: true, mode: 0o755 })
  await mkdir(unfinished, { mode: 0o700 })
  if (account !== null) await chown(unfinished, account.uid, account.gid)
  try {
    await initialize(binaries, unfinished, account)
    await rename(unfinished, folder)
    if (elsewhere) await pointTo(folder, asked)
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true })
    if (!(await exists(join(asked, 'PG_VERSION')))) throw error // else another start was faster
  }
  return await realpath(asked)
}

/** Replaces a link whose target is gone; a folder that holds something else is left alone and reported. */
async function pointTo(folder: string, asked: string): Promise<void> {
  await rm(asked, { force: true })
  await symlink(folder, asked)
}

async function initialize(binaries: string, folder: string, account: Account | null): Promise<void> {
  const locale = ['--encoding=UTF8', '--no-locale', '--locale-provider=builtin', '--builtin-locale=C.UTF-8']
  const args = ['-D', folder, '-U', 'postgres', '-A', 'trust', '--no-sync', '--no-instructions', ...locale]
  try {
    await run(join(binaries, 'bin', 'initdb'), args, { cwd: '/', env: ENVIRONMENT, ...account })
  } catch (error) {
    const said = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : String(error)
    throw new Error(`Postgres could not make its data folder ${folder}: ${said}`, { cause: error })
  }
}
