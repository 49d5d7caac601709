/** A validator beside a database that lacks a migration: one sentence, not ready with it as the reason, and ready once it is there. */
import { NotMigrated } from '@keyward/database'
import { expect, test } from 'vitest'

import { Unmigrated } from '../../src/feed/migration-status.ts'
import { startValidator } from '../../src/validator.ts'
import { configFor, createWorld, send, until } from '../harness.ts'

const sentence = 'The database has not been migrated yet; 0009_validator_role is missing. Run "npm run migrate".'

test('is said once, explains what fails for it, and ends when the log is followed', () => {
  const said: string[] = []
  const unmigrated = new Unmigrated((text) => said.push(text))
  const failure = Object.assign(new Error('function does not exist'), { code: '42883' })
  expect(unmigrated.explains(failure)).toBe(false)
  for (let i = 0; i < 3; i++) expect(unmigrated.explains(new NotMigrated(['0009_validator_role']))).toBe(true)
  expect(unmigrated.explains(failure)).toBe(true)
  expect(unmigrated.explains(new Error('connection refused'))).toBe(false)
  expect(said).toEqual([sentence])
  expect(unmigrated.reason).toBe(sentence)
  unmigrated.followed()
  expect(unmigrated.reason).toBeNull()
})

test('readiness names what is missing until it is there', async () => {
  const { database } = await createWorld()
  const taken = `delete from kysely_migration where name = '0009_validator_role'`
  await database.pool.query(taken)
  const validator = await startValidator(configFor(database.validatorUrl))
  try {
    const ready = () => send(validator.adminPort, '/readyz', { method: 'GET' })
    await until(async () => (await ready()).text.includes('0009_validator_role'))
    expect(await ready()).toMatchObject({ status: 503, body: { reasons: [sentence] } })
    await database.pool.query(`insert into kysely_migration values ('0009_validator_role', now()::text)`)
    await validator.loaded
    expect((await ready()).status).toBe(200)
  } finally {
    await validator.close()
    await database.drop()
  }
})
