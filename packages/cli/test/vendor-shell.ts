import { createTestDatabase, type TestDatabase } from '@keyward/testkit'
import { expect } from 'vitest'
import { z } from 'zod'

import { openShell, type TestShell } from './run-cli.ts'
import { type RunningService, startProgram } from './services.ts'

const OPERATOR_TOKEN = 'operator-token-of-these-tests-only'
export const identified = z.object({ id: z.string() })

export interface VendorShell {
  database: TestDatabase
  management: RunningService
  shell: TestShell
  /** Runs a command that must succeed and returns its JSON result. */
  result: <T>(schema: z.ZodType<T>, ...args: string[]) => Promise<T>
  close: () => Promise<void>
}

/** Starts the real management service, and opens a shell with the operator token and the token of a new organization. */
export async function openVendorShell(): Promise<VendorShell> {
  const database = await createTestDatabase()
  const shell = await openShell()
  const env = { PATH: process.env['PATH'] ?? '', KEYWARD_DATABASE_URL: database.url }
  const management = await startProgram('management', {
    ...env,
    KEYWARD_OPERATOR_TOKEN: OPERATOR_TOKEN,
    KEYWARD_MASTER_KEY: 'ab'.repeat(32),
  })
  const result = async <T>(schema: z.ZodType<T>, ...args: string[]): Promise<T> => {
    const printed = await shell.cli('--json', ...args)
    expect(printed.err).toBe('')
    return schema.parse(JSON.parse(printed.out))
  }
  shell.env['KEYWARD_URL'] = management.url
  shell.env['KEYWARD_OPERATOR_TOKEN'] = OPERATOR_TOKEN
  const created = z.object({ managementToken: z.string() })
  shell.env['KEYWARD_TOKEN'] = (await result(created, 'org', 'create', 'Acme', '--plan', 'STANDARD')).managementToken
  const close = async (): Promise<void> => {
    await management.stop()
    await shell.clear()
    await database.drop()
  }
  return { database, management, shell, result, close }
}
