/**
 * Tests failovers of Postgres under load, in a Patroni cluster with synchronous and with asynchronous standbys. Management uses
 * the addresses of all nodes, and the validators use haproxy. The tests are skipped if programs of the cluster are missing.
 */

import { rm } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

import { createPool } from '@keyward/database'
import { migrate } from '@keyward/database/migrate'
import { onServer, type Proxy, startProxy, VALIDATOR_LOGIN } from '@keyward/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import {
  endChildren,
  freePort,
  type Service,
  startManagement,
  startValidator,
  untilReady,
} from '../faults/support/children.ts'
import { figure } from '../faults/support/length.ts'
import { newFolder } from '../faults/support/postgres.ts'
import { type Node, PatroniCluster } from './patroni/cluster.ts'
import type { Mode } from './patroni/configuration.ts'
import { findTools } from './patroni/tools.ts'
import { Traffic } from './support/traffic.ts'

const RUNS = Number(process.env['KEYWARD_RUNS'] ?? 1)
const BEFORE_MS = 3_000
const AFTER_MS = 5_000
/** The time within which changes and checks of new machines must succeed again after a fault. */
const RECOVERY_MS = 120_000
const CUT_MS = 12_000
/** The duration of the loss of etcd. It is longer than the leader's lock lasts, so that the primary steps down. */
const ETCD_MS = 30_000

const tools = await findTools()
if (typeof tools === 'string') process.stdout.write(`The failover tests are skipped. ${tools}\n`)

/** Injects a fault. Resolves when the fault has ended or has reached its final state. */
type Fault = (cluster: PatroniCluster, links: readonly Proxy[]) => Promise<unknown>

async function primaryOf(cluster: PatroniCluster): Promise<Node> {
  const node = await cluster.primary()
  if (node === null) throw new Error('No node is the primary')
  return node
}

async function untilReplaced(cluster: PatroniCluster, former: Node): Promise<void> {
  for (const endMs = performance.now() + 90_000; performance.now() < endMs; await sleep(100)) {
    const node = await cluster.primary()
    if (node !== null && node.name !== former.name) return
  }
  throw new Error(`${former.name} was not replaced.\n${cluster.output().slice(-4_000)}`)
}

const FAULTS: Readonly<Record<string, Fault>> = {
  switchover: (cluster) => cluster.switchover(),
  'kill -9 of the primary': async (cluster) => {
    const node = await primaryOf(cluster)
    await node.process.kill()
    await untilReplaced(cluster, node)
    await cluster.restart(node)
  },
  'SIGSTOP of the primary': async (cluster) => {
    const node = await primaryOf(cluster)
    await node.process.signalAll('SIGSTOP')
    await untilReplaced(cluster, node)
    await sleep(AFTER_MS)
    await node.process.signalAll('SIGCONT')
  },
  'cut between primary and standbys': async (_cluster, links) => {
    for (const link of links) link.swallow()
    await sleep(CUT_MS)
    for (const link of links) link.heal()
  },
  'loss of etcd': async (cluster) => {
    await cluster.freezeEtcd()
    await sleep(ETCD_MS)
    await cluster.thawEtcd()
  },
}

/** Returns the longest interval in seconds between two consecutive times. `timesMs` are in any order. */
function longestGap(timesMs: readonly number[]): number {
  const sorted = timesMs.toSorted((a, b) => a - b)
  const gaps = sorted.map((time, i) => time - (sorted[i - 1] ?? time))
  return Math.round(Math.max(0, ...gaps) / 100) / 10
}

/** Returns the number of services that have ended. */
async function endedOf(services: readonly Service[]): Promise<number> {
  const states = await Promise.all(services.map(({ exit }) => Promise.race([exit, sleep(10).then(() => null)])))
  return states.filter((state) => state !== null).length
}

describe.skipIf(typeof tools === 'string').each<[Mode]>([['synchronous'], ['asynchronous']])('%s standbys', (mode) => {
  let folder: string
  let cluster: PatroniCluster
  let validators: Service[]
  let management: Service
  const links: Proxy[] = []

  beforeAll(async () => {
    if (typeof tools === 'string') return
    folder = await newFolder()
    const replicationPort = async (port: number): Promise<number> => {
      const link = await startProxy(port)
      links.push(link)
      return link.port
    }
    cluster = new PatroniCluster(tools, { folder, mode, freePort, replicationPort, fsync: false })
    await cluster.start()
    await migrate(cluster.url)
    const { user, password } = VALIDATOR_LOGIN
    await onServer(cluster.url, (client) =>
      client.query(`create role ${user} login password '${password}' in role keyward_validator`),
    )
    const address = new URL(cluster.url)
    address.username = user
    address.password = password
    management = await startManagement(cluster.urlOfHosts)
    validators = [await startValidator(address.href), await startValidator(address.href)]
    await untilReady(management, ...validators)
  })
  afterAll(async () => {
    await Promise.all([...(validators ?? []), management].map((service) => service?.stop()))
    await cluster?.close()
    await Promise.all(links.map((link) => link.close()))
    await endChildren()
    await rm(folder, { recursive: true, force: true })
  })

  const cases = Object.entries(FAULTS).flatMap(([name, fault]) =>
    Array.from({ length: RUNS }, (_, run) => ({ name, fault, run: run + 1 })),
  )

  test.each(cases)('no license exceeds its limit after $name (run $run)', async ({ name, fault, run }) => {
    await cluster.untilHealthy()
    await untilReady(management, ...validators)
    const traffic = new Traffic(validators, management)
    await traffic.prepare()
    traffic.start()
    await sleep(BEFORE_MS)
    const faultMs = performance.now()
    await fault(cluster, links)
    const endedMs = performance.now()
    const isRecovered = (timesMs: readonly number[]): boolean => timesMs.some((time) => time > endedMs)
    await expect
      .poll(() => [isRecovered(traffic.writtenMs), isRecovered(traffic.grantedMs)], { timeout: RECOVERY_MS })
      .toEqual([true, true])
    await sleep(AFTER_MS)
    await traffic.stop()
    await cluster.untilHealthy()
    const pool = createPool(cluster.url, { name: 'failover test', max: 1 })
    const { overLimit, lostSlots, lostRules, different } = await traffic.compare(pool)
    await pool.end()
    const enforced = traffic.rules.filter(({ acceptedMs, enforcedMs }) => acceptedMs > faultMs && enforcedMs < Infinity)
    const endedServices = await endedOf([management, ...validators])
    figure(`Failover, ${mode}, ${name}, run ${run}`, {
      withoutWritesSeconds: longestGap(traffic.writtenMs),
      withoutNewMachinesSeconds: longestGap(traffic.grantedMs),
      knownChecks: traffic.knownChecks,
      knownFailures: traffic.knownFailures.length,
      slowestRuleMs: Math.round(Math.max(0, ...enforced.map(({ enforcedMs }) => enforcedMs))),
      rules: traffic.rules.length,
      lostRules,
      slots: traffic.slots,
      lostSlots,
      overLimit,
      different: different.length,
      restartsNeeded: endedServices,
    })
    expect(traffic.givenUp).toEqual([])
    expect(traffic.knownFailures).toEqual([])
    expect(different.slice(0, 5)).toEqual([])
    expect(overLimit).toBe(0)
    expect(endedServices).toBe(0)
    expect(traffic.slots).toBeGreaterThan(10)
    // Without a synchronous standby, a failover may lose the last commits.
    const mayBeLost = mode === 'synchronous' ? 0 : Infinity
    expect(Math.max(lostSlots, lostRules)).toBeLessThanOrEqual(mayBeLost)
  })

  test('validators report whether a failover may lose slots', async () => {
    const isWarning = async ({ adminPort }: Service): Promise<boolean> =>
      (await (await fetch(`http://127.0.0.1:${adminPort}/readyz`)).text()).includes('may lose granted slots')
    await expect
      .poll(() => Promise.all(validators.map(isWarning)), { timeout: 20_000 })
      .toEqual([mode === 'asynchronous', mode === 'asynchronous'])
  })
})
