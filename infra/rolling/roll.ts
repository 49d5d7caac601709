/**
 * Everything that happens to a cluster in its life, one after another, under load: the schema is upgraded, every process is
 * restarted in turn, one validator is killed. Nobody outside may notice.
 */
import { setTimeout as sleep } from 'node:timers/promises'

import { createPool } from '@keyward/database'

import type { Cluster, Member } from '../cluster/cluster.ts'
import { startChanges, type ChangesReport } from './changes.ts'
import { createClient } from './client.ts'
import { startLoad, type LoadReport } from './load.ts'
import { createWorld } from './world.ts'

export interface RollOptions {
  cluster: Cluster
  databaseUrl: string
  operatorToken: string
  checksPerSecond: number
  connections: number
  /** Between one event and the next. */
  pauseMs: number
  next: () => number
  /** Management and validators at the same time, each in turn; else one process after the other. */
  isHurried?: boolean
  report: (line: string) => void
}

export interface RollReport {
  load: LoadReport
  changes: ChangesReport
  /** In the order of happening. */
  events: { name: string; tookMs: number }[]
}

export async function roll(options: RollOptions): Promise<RollReport> {
  const { cluster, operatorToken, report, pauseMs } = options
  const client = createClient(cluster.baseUrl, cluster.certificate, options.connections)
  const world = await createWorld(client, operatorToken)
  const load = startLoad(client, world, options.checksPerSecond, options.next)
  const changes = startChanges(client, world)
  const events: RollReport['events'] = []
  const happens = async (name: string, what: () => Promise<void>): Promise<void> => {
    const startedAt = performance.now()
    await what()
    const tookMs = Math.round(performance.now() - startedAt)
    events.push({ name, tookMs })
    report(`${name}: ${tookMs} ms`)
    await sleep(pauseMs)
  }
  await sleep(pauseMs)
  await happens('schema upgraded', () => upgradeSchema(options.databaseUrl))
  const restartAll = async (members: readonly Member[]): Promise<void> => {
    for (const member of members) await happens(`${member.name} restarted`, () => member.restart())
  }
  const managements = restartAll(cluster.managements)
  if (options.isHurried !== true) await managements
  await Promise.all([managements, restartAll(cluster.validators)])
  const victim = cluster.validators[1]
  if (victim) {
    await happens(`${victim.name} killed`, () => victim.kill())
    await happens(`${victim.name} started again`, () => victim.start())
  }
  const result = { changes: await changes.stop(), load: await load.stop(), events }
  client.close()
  return result
}

/** What a migration of a later version does to the tables that checks depend on, noted as one that this version lacks. */
async function upgradeSchema(databaseUrl: string): Promise<void> {
  const pool = createPool(databaseUrl, { name: 'keyward rolling', max: 1 })
  try {
    await pool.query(`begin;
      set local lock_timeout = '2s';
      alter table licenses add column of_a_later_version text;
      alter table access_rules add column of_a_later_version integer not null default 0;
      create index of_a_later_version on licenses (created_at);
      insert into kysely_migration (name, timestamp) values ('9999_of_a_later_version', now()::text);
      commit`)
  } finally {
    await pool.end()
  }
}
