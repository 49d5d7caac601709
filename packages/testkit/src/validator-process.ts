/**
 * Runs a validator as a process for tests of other programs, because services never import each other. The validator connects with the
 * restricted role, as in production.
 */

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import type { TestDatabase } from './database.ts'

export interface ValidatorProcess {
  readonly port: number
  readonly adminUrl: string
  stop(): Promise<void>
}

const MAIN = fileURLToPath(new URL('../../../services/validator/src/main.ts', import.meta.url))
const START_MS = 20_000

/** Starts a validator. Resolves when the validator is ready and registered in the database. `env` overrides its environment variables. */
export async function startValidatorProcess(
  { pool, validatorUrl }: TestDatabase,
  env: Record<string, string> = {},
): Promise<ValidatorProcess> {
  const child = fork(MAIN, {
    env: {
      PATH: process.env['PATH'],
      NODE_OPTIONS: process.env['NODE_OPTIONS'],
      UWEBSOCKETS_RELEASE: process.env['UWEBSOCKETS_RELEASE'],
      DATABASE_URL: validatorUrl,
      VALIDATOR_PORT: '0',
      VALIDATOR_ADMIN_PORT: '0',
      VALIDATOR_WORKERS: '1',
      LOG_LEVEL: 'silent',
      ...env,
    },
  })
  const ended = once(child, 'exit')
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM')
    await ended
  }
  const endWithTests = (): unknown => child.kill('SIGKILL')
  process.once('exit', endWithTests)
  child.once('exit', () => process.off('exit', endWithTests))
  const announced = await Promise.race([once(child, 'message'), ended])
  const { port, adminPort } = portsOf(announced[0])
  const adminUrl = `http://127.0.0.1:${adminPort}`
  const startedMs = performance.now()
  const isFound = async (): Promise<boolean> => {
    if (!(await fetch(`${adminUrl}/readyz`)).ok) return false
    const found = await pool.query(`select from validators where ready and details ->> 'adminUrl' = $1`, [adminUrl])
    return found.rows.length > 0
  }
  while (!(await isFound())) {
    if (performance.now() - startedMs > START_MS) throw new Error(`The validator was not ready after ${START_MS} ms.`)
    await sleep(20)
  }
  return { port, adminUrl, stop }
}

function portsOf(message: unknown): { port: number; adminPort: number } {
  if (typeof message !== 'object' || message === null || !('port' in message) || !('adminPort' in message))
    throw new Error(`The validator ended during its start: ${JSON.stringify(message)}`)
  return { port: Number(message.port), adminPort: Number(message.adminPort) }
}
