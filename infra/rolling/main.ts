/**
 * `npm run rolling`: upgrades and restarts a cluster on this machine under load, kills one of its processes, and prints the effect on
 * callers. Exits with 1 if a request failed or a verdict was wrong. KEYWARD_CHECKS_PER_SECOND sets the load, and KEYWARD_PAUSE sets the time between two
 * events.
 */

import { randomBytes } from 'node:crypto'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { migrate } from '@keyward/database/migrate'
import { startPostgres } from '@keyward/embedded-postgres'
import { durationMs, failStart, integer, readConfig, reportOldNames } from '@keyward/runtime'
import { z } from 'zod'

import { startCluster } from '../cluster/cluster.ts'
import { ensureServiceLogins } from '../shared/logins.ts'
import { rollingUpgrade, type UpgradeReport } from './rolling-upgrade.ts'

const configSchema = z.object({
  CHECKS_PER_SECOND: integer(1, 20_000).default(1_000),
  PAUSE: durationMs().default(5_000),
})

async function main(): Promise<void> {
  const config = readConfig(configSchema)
  reportOldNames(configSchema)
  const folder = await mkdtemp(join(tmpdir(), 'keyward-rolling-'))
  await chmod(folder, 0o755) // As root, Postgres runs as another user.
  const postgres = await startPostgres({ dataFolder: join(folder, 'data') })
  try {
    await migrate(postgres.url)
    const report = await runUpgrade(postgres.url, config.CHECKS_PER_SECOND, config.PAUSE)
    process.stdout.write(formatReport(report, config.CHECKS_PER_SECOND))
    if (report.load.failed + report.load.wrong + report.changes.failed.length > 0) process.exitCode = 1
  } finally {
    await postgres.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

async function runUpgrade(databaseUrl: string, checksPerSecond: number, pauseMs: number): Promise<UpgradeReport> {
  const { validatorUrl, managementUrl } = await ensureServiceLogins(databaseUrl, 'keyward_rolling')
  const operatorToken = randomBytes(32).toString('base64url')
  const masterKey = randomBytes(32).toString('base64')
  const urls = { databaseUrl: managementUrl, validatorUrl }
  const cluster = await startCluster({ ...urls, operatorToken, masterKey })
  const report = (line: string): void => void process.stderr.write(`${line}\n`)
  try {
    const options = { cluster, databaseUrl, operatorToken, checksPerSecond, pauseMs, report }
    return await rollingUpgrade({ ...options, connections: 64, next: Math.random })
  } finally {
    await cluster.stop()
  }
}

function formatReport({ load, changes, events }: UpgradeReport, checksPerSecond: number): string {
  const ms = (value: number): string => `${value.toFixed(1)} ms`
  return `
| | |
|---|---|
| events, total duration | ${events.length}, ${(events.reduce((sum, { tookMs }) => sum + tookMs, 0) / 1_000).toFixed(1)} s |
| checks | ${load.checks} at ${checksPerSecond}/s |
| without a verdict | ${load.failed} |
| with a wrong verdict | ${load.wrong} |
| p50, p99, longest | ${ms(load.p50Ms)}, ${ms(load.p99Ms)}, ${ms(load.longestMs)} |
| licenses created, checked, revoked, checked again | ${changes.rounds} |
| management requests that failed | ${changes.failed.length} |
${[...load.examples, ...changes.failed.slice(0, 20)].map((line) => `\n${line}`).join('')}
`
}

main().catch(failStart)
