/**
 * The password of the superuser. Without a password, every user of the machine could run programs under the account of the server. The
 * password is random, and is stored beside the data folder in a file that only its owner can read.
 */

import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { open, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import type { Account } from './binaries.ts'
import { ENVIRONMENT, passwordFile, pathFromInside } from './data-folder.ts'

/** The content of pg_hba.conf, which requires a password for all connections. It replaces the rules of initdb and of earlier versions. */
const RULES = `# TYPE DATABASE USER ADDRESS METHOD
local all all scram-sha-256
host all all 127.0.0.1/32 scram-sha-256
host all all ::1/128 scram-sha-256
host replication all 127.0.0.1/32 scram-sha-256
`

/**
 * Statements that remove details from the log, because the detail of a violated constraint can contain license keys and
 * e-mail addresses. A setting of the server would also remove the details of a failed start.
 */
const SESSION_SETTINGS = ['alter role all set log_error_verbosity = terse']

/**
 * Returns the superuser's password for a data folder on which no server runs. If none is stored, as for a new folder or a folder of an
 * earlier version, sets a new password. The file is written last, so the next call repeats an interrupted one.
 */
export async function ensurePassword(folder: string, binaries: string, account: Account | null): Promise<string> {
  const path = passwordFile(folder)
  const stored = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
  if (stored !== null && stored.trim() !== '') return stored.trim()
  const password = randomBytes(24).toString('base64url')
  await runWithoutConnections([...SESSION_SETTINGS, ...setPassword(password)], folder, binaries, account)
  await writeFile(join(folder, 'pg_hba.conf'), RULES) // keeps the owner of the file
  await store(path, password)
  return password
}

/** Returns statements that set the password with a fast hash. A random password needs no slow hash, which would delay every connection. */
function setPassword(password: string): string[] {
  return ['set scram_iterations = 1', `alter role postgres password '${password}'`]
}

/** Runs statements in single-user mode, in which Postgres accepts no connections. */
async function runWithoutConnections(
  statements: readonly string[],
  folder: string,
  binaries: string,
  account: Account | null,
): Promise<void> {
  const settings = ['-c', 'password_encryption=scram-sha-256', '-c', 'log_min_error_statement=panic']
  const args = ['--single', '-D', pathFromInside(folder, account), ...settings, 'postgres']
  const child = spawn(join(binaries, 'bin', 'postgres'), args, {
    cwd: folder,
    env: ENVIRONMENT,
    stdio: ['pipe', 'ignore', 'pipe'],
    ...account,
  })
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  child.stdin.on('error', () => undefined) // errors of writes after the end of the program
  child.stdin.end(statements.map((statement) => `${statement};\n`).join(''))
  await once(child, 'close')
  const reasons = errors.split('\n').filter((line) => /FATAL|PANIC|ERROR|DETAIL|HINT/.test(line))
  if (child.exitCode !== 0 || reasons.length > 0)
    throw new Error(
      `Postgres could not set the password of ${folder}: ${reasons.join(' ') || `exit code ${child.exitCode}`}`,
    )
}

async function store(path: string, password: string): Promise<void> {
  const unfinished = `${path}.unfinished`
  const file = await open(unfinished, 'w', 0o600)
  try {
    await file.chmod(0o600)
    await file.writeFile(`${password}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(unfinished, path)
}
