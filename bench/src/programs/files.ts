/**
 * Measures `POST /licenses/file`, which every installation of an app calls once a day. One management process and one validator run over a
 * temporary Postgres. Apps of several organizations request files at the same time. The processor time per file limits the number of files
 * that a process can issue a second.
 */

import { resolve } from 'node:path'
import { parseArgs } from 'node:util'

import { LAUNCH } from '@keyward/runtime'

import { type Child, startChild } from '../harness/children.ts'
import { runMain, wholeNumber } from '../harness/command-line.ts'
import { type App, createApps, requestFiles } from '../harness/file-requests.ts'
import { startManagement, VALIDATOR_FILE } from '../harness/management-api.ts'
import { summarize, type Summary } from '../harness/stats.ts'
import { withPostgres } from '../harness/temporary-postgres.ts'
import { cpuMs, mainThreadCpuMs } from '../harness/usage.ts'
import { writeResult } from '../report/results.ts'

const HELP = `node bench/src/programs/files.ts [options]

  --rounds N        rounds, alternating between the checkouts (default 7)
  --seconds N       length of a round (default 3)
  --organizations N organizations whose apps request files (default 8)
  --connections N   requests of each organization that wait for a response at the same time (default 6)
  --against DIR     a checkout whose management service is compared, with its packages installed
  --help

Writes bench/results/files.json.`

const LICENSES = 50

interface Round {
  filesPerSecond: number
  /** The processor time of the management process per file in microseconds, or null if the system does not report it. */
  cpuUs: number | null
  /** The part of `cpuUs` that its main thread took. */
  mainThreadUs: number | null
}

interface Figures {
  filesPerSecond: Summary
  cpuUs: Summary | null
  mainThreadUs: Summary | null
}

await runMain('files', async () => {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '7' },
      seconds: { type: 'string', default: '3' },
      organizations: { type: 'string', default: '8' },
      connections: { type: 'string', default: '6' },
      against: { type: 'string' },
      help: { type: 'boolean' },
    },
  })
  if (values.help === true) return console.log(HELP)
  const rounds = wholeNumber('--rounds', values.rounds, 1)
  const seconds = wholeNumber('--seconds', values.seconds, 1)
  const organizations = wholeNumber('--organizations', values.organizations, 1)
  const connections = wholeNumber('--connections', values.connections, 1)
  await withPostgres(async (url) => {
    const current = await startManagement(url)
    const services = new Map([['current', current]])
    if (values.against !== undefined) services.set('against', await startManagement(url, resolve(values.against)))
    const apps = await createApps(url, current.port, organizations, LICENSES)
    await startValidator(url)
    const data = await measure(services, apps, connections, rounds, seconds)
    console.log(JSON.stringify(data, null, 2))
    console.log(writeResult('files', { organizations, connections, ...data }))
  })
})

async function startValidator(databaseUrl: string): Promise<Child> {
  const env = { DATABASE_URL: databaseUrl, VALIDATOR_PORT: '0', VALIDATOR_ADMIN_PORT: '0', LOG_LEVEL: 'warn' }
  const validator = await startChild({ file: VALIDATOR_FILE, launch: LAUNCH.validator, env })
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${validator.adminPort}/readyz`)
    await response.arrayBuffer()
    if (response.ok) return validator
    await new Promise((done) => setTimeout(done, 50))
  }
}

async function measure(
  services: ReadonlyMap<string, Child>,
  apps: readonly App[],
  connections: number,
  rounds: number,
  seconds: number,
): Promise<Record<string, Figures>> {
  const measured = new Map([...services.keys()].map((name) => [name, Array.of<Round>()]))
  for (let round = -1; round < rounds; round += 1)
    for (const [name, service] of services) {
      const figure = await measureRound(service, apps, connections, seconds)
      if (round >= 0) measured.get(name)!.push(figure) // the first round is a warm-up
    }
  return Object.fromEntries(
    [...measured].map(([name, list]) => {
      const summary = (field: keyof Round) => summarizeKnown(list.map((figure) => figure[field]))
      const filesPerSecond = summarize(list.map((figure) => figure.filesPerSecond))
      return [name, { filesPerSecond, cpuUs: summary('cpuUs'), mainThreadUs: summary('mainThreadUs') }]
    }),
  )
}

function summarizeKnown(values: readonly (number | null)[]): Summary | null {
  const known = values.filter((value) => value !== null)
  return known.length === 0 ? null : summarize(known)
}

async function measureRound(
  { pid, port }: Child,
  apps: readonly App[],
  connections: number,
  seconds: number,
): Promise<Round> {
  const before = { cpu: cpuMs(pid), mainThread: mainThreadCpuMs(pid) }
  const counts = await Promise.all(apps.map((app) => requestFiles(port, app, connections, seconds)))
  const files = counts.reduce((sum, count) => sum + count, 0)
  const perFile = (startMs: number | null, endMs: number | null) =>
    startMs === null || endMs === null ? null : ((endMs - startMs) * 1000) / files
  return {
    filesPerSecond: files / seconds,
    cpuUs: perFile(before.cpu, cpuMs(pid)),
    mainThreadUs: perFile(before.mainThread, mainThreadCpuMs(pid)),
  }
}
