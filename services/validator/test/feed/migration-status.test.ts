/**
 * Tests a validator whose database lacks a migration: it is not ready, and the reason is one sentence that names the migration.
 */

import { NotMigrated } from '@keyward/database'
import { expect, test } from 'vitest'

import { MigrationStatus } from '../../src/feed/migration-status.ts'
import { configFor, createWorld, send, startValidator, until } from '../harness.ts'

const sentence = 'The database has not been migrated yet; 0001_baseline is missing. Run "npm run migrate".'

test('logs a missing migration once, and attributes errors to it until the feed works', () => {
  const logged: string[] = []
  const status = new MigrationStatus((text) => logged.push(text))
  const failure = Object.assign(new Error('function does not exist'), { code: '42883' })
  expect(status.explains(failure)).toBe(false)
  for (let i = 0; i < 3; i++) expect(status.explains(new NotMigrated(['0001_baseline']))).toBe(true)
  expect(status.explains(failure)).toBe(true)
  expect(status.explains(new Error('connection refused'))).toBe(false)
  expect(logged).toEqual([sentence])
  expect(status.reason).toBe(sentence)
  status.clear()
  expect(status.reason).toBeNull()
})

test('names the missing migration in /readyz until it is applied', async () => {
  const { database } = await createWorld()
  const taken = `delete from migrations where name = '0001_baseline'`
  await database.pool.query(taken)
  const validator = await startValidator(configFor(database.validatorUrl), 'small')
  try {
    const ready = () => send(validator.adminPort, '/readyz', { method: 'GET' })
    await until(async () => (await ready()).text.includes('0001_baseline'))
    expect(await ready()).toMatchObject({ status: 503, body: { reasons: [sentence] } })
    await database.pool.query(`insert into migrations values ('0001_baseline')`)
    await validator.loaded
    expect((await ready()).status).toBe(200)
  } finally {
    await validator.close()
    await database.drop()
  }
})
