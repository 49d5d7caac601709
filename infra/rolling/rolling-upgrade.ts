/** Runs a rolling upgrade under load: upgrades the schema, restarts every process in turn, and kills one validator. No request may fail. */

import { setTimeout as sleep } from 'node:timers/promises'

import { createPool } from '@keyward/database'

import type { Cluster, Member } from '../cluster/cluster.ts'
import { createHttpsClient } from '../shared/https-client.ts'
import { createFixture } from './fixture.ts'
import { startLoad, type LoadReport } from './load.ts'
import { startVendorTraffic, type VendorReport } from './vendor-traffic.ts'

interface UpgradeOptions {
  cluster: Cluster
  databaseUrl: string
  operatorToken: string
  checksPerSecond: number
  connections: number
  /** The time between two events in ms. */
  pauseMs: number
  /** Returns a random number of at least 0 and less than 1. */
  next: () => number
  /** If true, one management process restarts while one validator restarts. The default is false: the validators restart first. */
  isConcurrent?: boolean
  report: (line: string) => void
}

export interface UpgradeReport {
  load: LoadReport
  changes: VendorReport
  /** The events in chronological order. */
  events: { name: string; tookMs: number }[]
}

export async function rollingUpgrade(options: UpgradeOptions): Promise<UpgradeReport> {
  const { cluster, operatorToken, report, pauseMs } = options
  const client = createHttpsClient(cluster.baseUrl, cluster.certificate, options.connections)
  const fixture = await createFixture(client, operatorToken)
  const load = startLoad(client, fixture, options.checksPerSecond, options.next)
  const changes = startVendorTraffic(client, fixture)
  const events: UpgradeReport['events'] = []
  const event = async (name: string, action: () => Promise<void>): Promise<void> => {
    const startedAt = performance.now()
    await action()
    const tookMs = Math.round(performance.now() - startedAt)
    events.push({ name, tookMs })
    report(`${name}: ${tookMs} ms`)
    await sleep(pauseMs)
  }
  await sleep(pauseMs)
  await event('schema upgraded', () => upgradeSchema(options.databaseUrl))
  const restartAll = async (members: readonly Member[]): Promise<void> => {
    for (const member of members) await event(`${member.name} restarted`, () => member.restart())
  }
  const validators = restartAll(cluster.validators)
  if (options.isConcurrent !== true) await validators
  await Promise.all([validators, restartAll(cluster.managements)])
  const victim = cluster.validators[1]
  if (victim) {
    await event(`${victim.name} killed`, () => victim.kill())
    await event(`${victim.name} started again`, () => victim.start())
  }
  const result = { changes: await changes.stop(), load: await load.stop(), events }
  client.close()
  return result
}

/** Changes tables as a migration of a later version would, and records a migration that this version does not contain. */
async function upgradeSchema(databaseUrl: string): Promise<void> {
  const pool = createPool(databaseUrl, { name: 'keyward rolling', max: 1 })
  try {
    await pool.query(`begin;
      set local lock_timeout = '2s';
      alter table licenses add column of_a_later_version text;
      alter table access_rules add column of_a_later_version integer not null default 0;
      create index of_a_later_version on licenses (created_at);
      insert into migrations (name) values ('9999_of_a_later_version');
      commit`)
  } finally {
    await pool.end()
  }
}
