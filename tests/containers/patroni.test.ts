/**
 * Installs compose.yaml with the Patroni cluster of patroni/compose.yaml, sends checks through TLS, and replaces the primary during
 * checks. The tests are skipped without a container engine.
 */

import { setTimeout as sleep } from 'node:timers/promises'

import { beforeAll, describe, expect, test } from 'vitest'

import { figure } from '../faults/support/length.ts'
import type { Callers, Vendor } from './support/callers.ts'
import { privilegesOf, reachable, statusFrom, UNPRIVILEGED } from './support/inside.ts'
import type { Installation } from './support/installation.ts'
import { NODES, Nodes } from './support/nodes.ts'
import { RuleWriter } from './support/rule-writer.ts'
import { isSkipped, SERVICES, startTopology } from './support/topology.ts'

const ETCD = ['etcd-1', 'etcd-2', 'etcd-3']
const HEALTHY = ['Leader running', 'Replica streaming', 'Sync Standby streaming']
const AROUND_MS = 2_000

describe.skipIf(isSkipped('the Patroni cluster in compose'))('the Patroni cluster of patroni/compose.yaml', () => {
  let installation: Installation
  let nodes: Nodes
  let app: Callers
  let vendor: Vendor
  let smokeTest: string

  beforeAll(async () => {
    const topology = await startTopology({ variables: { POSTGRES_MEMORY: '1g' }, hasCluster: true, maxMachines: 20 })
    ;({ installation, app, vendor, smokeTest } = topology)
    nodes = new Nodes(installation)
    return () => topology.remove()
  })

  const startsOf = (): string[] =>
    SERVICES.map((name) => {
      const { State, RestartCount } = installation.inspect(name)
      return `${name} ${State.StartedAt} ${RestartCount}`
    })

  test('returns a verdict through TLS', () => {
    expect(smokeTest).toContain('The first check is VALID')
    expect(smokeTest).toContain('The installation works.')
  })

  test.each(['postgres', ...NODES, ...ETCD])(
    '%s is healthy, and runs without privileges on a read-only file system',
    async (name) => {
      await expect.poll(() => installation.inspect(name).State.Health?.Status).toBe('healthy')
      expect(privilegesOf(installation, name)).toEqual(UNPRIVILEGED)
    },
  )

  test('the services reach only the balancer of the cluster, and the balancer does not reach etcd', () => {
    const addressesOf = (name: string, port: number): string[] =>
      Object.values(installation.inspect(name).NetworkSettings.Networks).map(({ IPAddress }) => `${IPAddress}/${port}`)
    const ofNodes = [5432, 8008].flatMap((port) => NODES.flatMap((name) => addressesOf(name, port)))
    const ofEtcd = ETCD.flatMap((name) => addressesOf(name, 2379))
    for (const service of ['validator-1', 'management-1'])
      expect(reachable(installation, service, ['postgres/5432', ...ofNodes, ...ofEtcd])).toEqual(['postgres/5432'])
    expect(reachable(installation, 'postgres', ofEtcd)).toEqual([])
    expect(reachable(installation, 'postgres-1', ofEtcd)).toEqual(ofEtcd.toSorted())
  })

  test.each(['POST /switchover', 'POST /restart', 'PATCH /config', 'DELETE /switchover'])(
    'Patroni rejects %s without a password',
    async (line) => {
      const [method = '', path = ''] = line.split(' ')
      expect(await statusFrom(installation, 'postgres', { host: 'postgres-1', port: 8008, method, path })).toBe(401)
    },
  )

  test('commits wait for a standby, and no value of a row is logged', async () => {
    await expect.poll(() => nodes.states()).toEqual(HEALTHY)
    const show = (name: string): string => nodes.query('postgres-1', `show ${name}`)
    expect(show('max_connections')).toBe('250')
    expect(show('log_error_verbosity')).toBe('terse')
    expect(show('log_min_error_statement')).toBe('panic')
    expect(show('log_parameter_max_length_on_error')).toBe('0')
    expect(nodes.query(await nodes.leader(), 'show synchronous_standby_names')).toMatch(/postgres-\d/)
    const metrics = `fetch('http://127.0.0.1:9080/metrics').then(r => r.text()).then(t => console.log(t))`
    await expect
      .poll(() => installation.shell('validator-1', `node -e "${metrics}"`))
      .toMatch(/^keyward_slots_failover_safe 1$/m)
  })

  const FAILOVERS: Readonly<Record<string, (former: string) => Promise<unknown>>> = {
    switchover: () => nodes.patronictl('switchover', '--force'),
    'kill of the primary': async (former) => {
      await installation.composeInBackground(['kill', former])
      const health = { host: '127.0.0.1', port: 8404, method: 'GET', path: '/' }
      await expect.poll(() => statusFrom(installation, 'postgres', health)).toBe(503)
    },
  }

  test.each(Object.entries(FAILOVERS))('known machines stay valid during a %s', async (name, inject) => {
    const known = Array.from({ length: 8 }, (_, number) => `machine-${number}`)
    for (const machine of known) await expect.poll(() => app.check(vendor, machine)).toBe('VALID')
    const starts = startsOf()
    const former = await nodes.leader()
    const writer = new RuleWriter(app, vendor, `blocked by ${name}`)
    const failover = async (): Promise<void> => {
      await sleep(AROUND_MS)
      await inject(former)
      await nodes.untilReplaced(former)
      const replacedMs = performance.now()
      await expect.poll(() => writer.hasWrittenSince(replacedMs)).toBe(true)
      await sleep(AROUND_MS)
    }
    const over = failover()
    const [codes] = await Promise.all([app.checkDuring(vendor, over), writer.writeUntil(over)])
    expect(Object.keys(codes)).toEqual(['VALID'])

    // No accepted rule is lost, and new machines get slots.
    for (const machine of writer.machines.toReversed())
      await expect.poll(() => app.check(vendor, machine)).toBe('BLACKLISTED')
    await expect.poll(() => app.check(vendor, `new after ${name}`)).toBe('VALID')
    expect(startsOf()).toEqual(starts)

    // A former primary becomes a standby again.
    installation.compose(['start', former])
    await expect.poll(() => nodes.states()).toEqual(HEALTHY)
    expect(await nodes.leader()).not.toBe(former)
    figure(`Compose with Patroni, ${name}`, {
      withoutWritesSeconds: writer.longestGapSeconds(),
      knownChecks: codes['VALID'] ?? 0,
      rules: writer.machines.length,
    })
  })
})
