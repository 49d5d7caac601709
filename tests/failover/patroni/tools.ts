/**
 * Finds the programs of a Patroni cluster: Patroni 4 or newer, etcd, haproxy and Postgres. Older versions of Patroni lose
 * acknowledged writes: a frozen leader that continues takes its lock back, and the new leader gives up. Debian 12 contains an
 * older version, so `install.ts` unpacks a newer version into a separate folder.
 */

import { execFile } from 'node:child_process'
import { access, constants, readdir } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const OLDEST_PATRONI = 4
const POSTGRES = '/usr/lib/postgresql'
/** The interpreter of Debian's packages. Another interpreter in the search path lacks the modules of these packages. */
const PYTHON = '/usr/bin/python3'

/**
 * The folder of a Patroni that `install.ts` has unpacked. Every user can read the folder, because Postgres and Patroni do not
 * run as root.
 */
export const UNPACKED =
  process.getuid?.() === 0 ? '/var/lib/keyward-patroni' : join(homedir(), '.local/share/keyward-patroni')

export interface Tools {
  /** The command that runs Patroni, without arguments. */
  readonly patroni: readonly string[]
  readonly patronictl: readonly string[]
  /** The folder of Patroni's modules. It is empty when Python finds the modules itself. */
  readonly modules: string
  readonly etcd: string
  readonly haproxy: string
  /** The folder of the programs of Postgres. */
  readonly postgres: string
}

const run = promisify(execFile)

/** Returns the programs, or a sentence that names the missing programs. */
export async function findTools(): Promise<Tools | string> {
  const [etcd, haproxy, postgres, found] = await Promise.all([
    findProgram('etcd'),
    findProgram('haproxy'),
    findPostgres(),
    findPatroni(),
  ])
  const missing = Object.entries({ etcd, haproxy, Postgres: postgres, 'Patroni 4': found })
    .filter(([, value]) => value === null)
    .map(([name]) => name)
  if (etcd === null || haproxy === null || postgres === null || found === null)
    return `Missing: ${missing.join(', ')}. Run npm run patroni:install as root on Debian 12 or 13.`
  return { ...found, etcd, haproxy, postgres }
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  )
}

async function findProgram(name: string): Promise<string | null> {
  const folders = [...(process.env['PATH'] ?? '').split(':'), '/usr/sbin', '/usr/bin']
  for (const folder of folders) if (await isExecutable(join(folder, name))) return join(folder, name)
  return null
}

/** Returns the programs of the newest installed version of Postgres. */
async function findPostgres(): Promise<string | null> {
  const versions = await readdir(POSTGRES).catch(() => [])
  for (const version of versions.toSorted((a, b) => Number(b) - Number(a))) {
    const folder = join(POSTGRES, version, 'bin')
    if (await isExecutable(join(folder, 'pg_rewind'))) return folder
  }
  return null
}

async function findPatroni(): Promise<Pick<Tools, 'patroni' | 'patronictl' | 'modules'> | null> {
  for (const root of [UNPACKED, '']) {
    const modules = root === '' ? '' : join(root, 'usr/lib/python3/dist-packages')
    const command = (name: string): string[] => [PYTHON, join(root, '/usr/bin', name)]
    const output = await run(PYTHON, [...command('patroni').slice(1), '--version'], {
      env: { PYTHONPATH: modules },
    }).catch(() => null)
    const version = Number(/^patroni (\d+)/.exec(output?.stdout ?? '')?.[1] ?? 0)
    if (version >= OLDEST_PATRONI) return { patroni: command('patroni'), patronictl: command('patronictl'), modules }
  }
  return null
}
