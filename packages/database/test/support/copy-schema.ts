import { cp, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

import { SCHEMA_FOLDER } from '../../src/migrations.ts'

/** Returns a copy of the schema folder, which the caller changes and removes. */
export async function copySchema(): Promise<URL> {
  const folder = await mkdtemp(join(tmpdir(), 'keyward-schema-'))
  for (const part of ['migrations', 'functions', 'grants.sql'])
    await cp(new URL(part, SCHEMA_FOLDER), join(folder, part), { recursive: true })
  return pathToFileURL(join(folder, '/'))
}
