import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { createTestDatabase, type TestDatabase } from '@keyward/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import { isInstalled } from '../cluster/balancer.ts'
import { type Cluster, startCluster } from '../cluster/cluster.ts'
import { createFixture } from '../rolling/fixture.ts'
import { startLoad } from '../rolling/load.ts'
import { createHttpsClient } from '../shared/https-client.ts'
import { INFRA, readYaml } from './manifests.ts'
import { type Prometheus, startPrometheus } from './prometheus.ts'

const read = (path: string): string => readFileSync(join(INFRA, path), 'utf8')
const rulesSchema = z.object({
  groups: z.array(
    z.object({
      rules: z.array(
        z.object({
          record: z.string().optional(),
          alert: z.string().optional(),
          expr: z.string(),
          labels: z.object({ severity: z.enum(['page', 'ticket']) }).optional(),
          annotations: z.object({ summary: z.string(), runbook: z.string() }).optional(),
        }),
      ),
    }),
  ),
})
const dashboardSchema = z.object({
  panels: z.array(
    z.object({
      title: z.string(),
      type: z.enum(['stat', 'timeseries', 'row']),
      gridPos: z.object({ x: z.int(), y: z.int(), w: z.int(), h: z.int() }),
      targets: z.array(z.object({ expr: z.string() })).default([]),
    }),
  ),
})
const rules = rulesSchema.parse(readYaml('prometheus/rules.yml')[0]).groups.flatMap((group) => group.rules)
const alerts = rules.filter(({ alert }) => alert !== undefined)
const { panels } = dashboardSchema.parse(JSON.parse(read('grafana/dashboards/keyward.json')))
/** The alerts that report a slow machine. Prometheus lists an alert as soon as its condition holds. */
const DEPENDS_ON_SPEED = new Set([
  'KeywardChecksSlow',
  'KeywardClaimsSlow',
  'KeywardEventLoopSlow',
  'KeywardManagementSlow',
])
const queries = panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ title, expr })))

test('every alert has a severity, a summary and a section in the runbook', () => {
  const runbook = read('../docs/operations/alerts.md')
  for (const { alert = '', labels, annotations } of alerts) {
    expect(labels, alert).toBeDefined()
    expect(annotations?.runbook).toBe(`docs/operations/alerts.md#${alert.toLowerCase()}`)
  }
  const headings = [...runbook.matchAll(/^## (\w+)$/gm)].map(([, name]) => name)
  expect(headings).toEqual(alerts.map(({ alert }) => alert))
})

test('no panel of the dashboard overlaps another', () => {
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`),
  )
  expect(new Set(cells).size).toBe(cells.length)
})

const hasPrometheus = isInstalled('prometheus', '--version') && isInstalled('promtool', '--version')

describe.skipIf(!hasPrometheus)('promtool (needs prometheus)', () => {
  test.each([
    ['check', 'config', 'prometheus/prometheus.yml'],
    ['check', 'rules', 'prometheus/rules.yml'],
    ['test', 'rules', 'test/alerts.promtool.yml'],
  ])('promtool %s %s %s succeeds', (...args) => {
    expect(execFileSync('promtool', args, { cwd: INFRA, encoding: 'utf8' })).toMatch(/SUCCESS/)
  })
})

const hasBalancer = isInstalled('haproxy', '-v') && isInstalled('openssl', 'version')

describe.skipIf(!hasPrometheus || !hasBalancer)('a cluster and its Prometheus (needs prometheus and haproxy)', () => {
  const operatorToken = 'operator-token-of-these-tests-only'
  let database: TestDatabase
  let cluster: Cluster
  let prometheus: Prometheus
  let exposed: string
  let failures: string[]

  beforeAll(async () => {
    database = await createTestDatabase()
    const masterKey = Buffer.alloc(32, 7).toString('base64')
    const urls = { databaseUrl: database.url, validatorUrl: database.validatorUrl }
    cluster = await startCluster({ ...urls, operatorToken, masterKey, validators: 2, managements: 1 })
    const host = (url: string): string => new URL(url).host
    const admins = (members: Cluster['validators']): string[] =>
      members.map(({ service }) => `127.0.0.1:${service.adminPort}`)
    const targets = {
      'keyward-validator': admins(cluster.validators),
      'keyward-management': admins(cluster.managements),
      'keyward-balancer': [host(cluster.metricsUrl)],
    }
    prometheus = await startPrometheus(targets)
    const client = createHttpsClient(cluster.baseUrl, cluster.certificate, 8)
    let turn = 0
    const load = startLoad(client, await createFixture(client, operatorToken), 200, () => (turn++ % 100) / 100)
    // Waits for six scrapes of every target. The rate of a metric needs at least two.
    while ((await prometheus.query('count_over_time(up[1m]) > 5')).length < 4) await sleep(100)
    failures = (await load.stop()).examples
    client.close()
    const pages = Object.values(targets).flat()
    exposed = (await Promise.all(pages.map(async (one) => (await fetch(`http://${one}/metrics`)).text()))).join('\n')
  }, 240_000)

  afterAll(async () => {
    await prometheus.stop()
    await cluster.stop()
    await database.drop()
  }, 240_000)

  test('the monitored checks succeed', () => {
    expect(failures).toEqual([])
  })

  test('every metric in the rules and the dashboard exists', () => {
    const known = new Set(['up', ...rules.map(({ record }) => record)])
    for (const [, name = '', type] of exposed.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
      known.add(name)
      if (type === 'histogram') for (const part of ['bucket', 'sum', 'count']) known.add(`${name}_${part}`)
    }
    const expressions = [...rules, ...queries].map(({ expr }) => expr)
    const named = expressions.flatMap(
      (expr) => expr.match(/\b(?:keyward|nodejs|process|haproxy)[_:][\w:]+\b(?!")/g) ?? [],
    )
    expect(new Set(named).size).toBeGreaterThan(20)
    expect(named.filter((name) => !known.has(name))).toEqual([])
  })

  test('every query in the rules and the dashboard is valid, and every panel shows data', async () => {
    for (const { expr } of rules) await prometheus.query(expr)
    const empty = []
    for (const { title, expr } of queries)
      if ((await prometheus.query(expr)).length === 0) empty.push(`${title}: ${expr}`)
    expect(empty).toEqual([])
  })

  test('a healthy cluster fires no alert, whatever the speed of the machine', async () => {
    // Targets are scraped at different times, so their values may differ until the next scrape.
    const unexpected = async () => (await prometheus.alerts()).filter((name) => !DEPENDS_ON_SPEED.has(name))
    for (let attempt = 0; attempt < 30 && (await unexpected()).length > 0; attempt++) await sleep(100)
    expect(await unexpected()).toEqual([])
  })

  test('no metric contains an address', () => {
    expect(exposed.split('\n').filter((line) => /\b(?:127\.0\.0\.1|::1)\b/.test(line))).toEqual([])
  })
})
