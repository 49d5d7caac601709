import { randomBytes } from 'node:crypto'

import { onServer, SERVER_VARIABLE, withDatabase } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { migrate } from '../src/migrate.ts'

const server = process.env[SERVER_VARIABLE] ?? ''
const name = `keyward_migrate_${randomBytes(4).toString('hex')}`
const url = withDatabase(server, name)

beforeAll(() => onServer(server, (client) => client.query(`create database ${name}`)))
afterAll(() => onServer(server, (client) => client.query(`drop database ${name} with (force)`)))

test('several processes may migrate at once; one does the work, and doing it again changes nothing', async () => {
  const reports = await Promise.all([migrate(url), migrate(url), migrate(url)])
  expect(reports.flatMap((report) => report.warnings)).toEqual([])
  expect(reports.filter((report) => report.applied.length > 0)).toHaveLength(1)
  expect((await migrate(url)).applied).toEqual([])
})

test('a database of a newer version is refused with a clear sentence', async () => {
  await onServer(url, (client) => client.query(`insert into kysely_migration values ('9999_future', now()::text)`))
  await expect(migrate(url)).rejects.toThrow(/newer version of Keyward \(9999_future\)/)
})
