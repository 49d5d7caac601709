/** Starts a Postgres with a migrated database for one measurement. By default, its commits are durable. Its data is deleted afterwards. */

import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { migrate } from '@keyward/database/migrate'
import { startPostgres } from '@keyward/embedded-postgres'

import { stopChildren } from './children.ts'

/**
 * Runs `work` with a database URL of a superuser and the process id of the server. Then stops all children and the server, and deletes the
 * data.
 */
export async function withPostgres(
  work: (url: string, pid: number) => Promise<void>,
  settings: Readonly<Record<string, string>> = {},
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'keyward-bench-'))
  await chmod(folder, 0o755) // As root, Postgres runs as another user.
  const postgres = await startPostgres({ dataFolder: join(folder, 'data'), settings })
  try {
    await migrate(postgres.url)
    await work(postgres.url, postgres.pid)
  } finally {
    await stopChildren()
    await postgres.stop()
    await rm(folder, { recursive: true, force: true })
  }
}
