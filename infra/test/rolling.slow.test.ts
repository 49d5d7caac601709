import { createTestDatabase, random, type TestDatabase } from '@keyward/testkit'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { isInstalled } from '../cluster/balancer.ts'
import { type Cluster, startCluster } from '../cluster/cluster.ts'
import { rollingUpgrade } from '../rolling/rolling-upgrade.ts'

const isHere = isInstalled('haproxy', '-v') && isInstalled('openssl', 'version')
const isLong = process.env['KEYWARD_LONG'] === '1'

describe.skipIf(!isHere)('a rolling upgrade (needs haproxy and openssl)', () => {
  const operatorToken = 'operator-token-of-these-tests-only'
  let database: TestDatabase
  let cluster: Cluster

  // A repeated test needs a database without the changes of its first run.
  beforeEach(async () => {
    database = await createTestDatabase()
    cluster = await startCluster({
      databaseUrl: database.url,
      validatorUrl: database.validatorUrl,
      operatorToken,
      masterKey: Buffer.alloc(32, 7).toString('base64'),
    })
  }, 240_000)

  afterEach(async () => {
    await cluster.stop()
    await database.drop()
  }, 240_000)

  test('no request fails, and no verdict is wrong', { timeout: 300_000 }, async () => {
    const { load, changes, events } = await rollingUpgrade({
      cluster,
      databaseUrl: database.url,
      operatorToken,
      checksPerSecond: isLong ? 1_000 : 200,
      connections: 16,
      pauseMs: isLong ? 5_000 : 200,
      next: random(7).next,
      isConcurrent: !isLong,
      report: () => undefined,
    })
    // As text, so that the report of a failure contains the responses.
    expect(load.examples.join('\n')).toBe('')
    expect(changes.failed.join('\n')).toBe('')
    expect(events).toHaveLength(8)
    expect(load.checks).toBeGreaterThan(500)
    expect(changes.rounds).toBeGreaterThan(0)
    const { rows } = await database.pool.query(
      'select from license_slots s join licenses l on l.id = s.license_id where s.used > l.max_machines',
    )
    expect(rows).toEqual([])
  })
})
