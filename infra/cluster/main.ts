/**
 * `npm run cluster`: starts Postgres, and two management processes and three validators behind haproxy with TLS, on this machine. Deletes
 * all data at the end. KEYWARD_EDGE_PORT is the port of haproxy; 0 lets the system choose.
 */

import { randomBytes } from 'node:crypto'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { migrate } from '@keyward/database/migrate'
import { startPostgres } from '@keyward/embedded-postgres'
import { effectiveVariables, explainStart, onStop, port, readConfig, reportOldNames } from '@keyward/runtime'
import { z } from 'zod'

import { type Demo, ensureDemo } from '../shared/demo.ts'
import { ensureServiceLogins } from '../shared/logins.ts'
import { choosePorts } from '../shared/ports.ts'
import { type Cluster, startCluster } from './cluster.ts'

const variables = z.object({ EDGE_PORT: port().default(8443) })
const stops: (() => Promise<void>)[] = []

async function main(): Promise<void> {
  reportOldNames(variables)
  const { EDGE_PORT } = await choosePorts(readConfig(variables))
  const folder = await mkdtemp(join(tmpdir(), 'keyward-cluster-'))
  stops.push(() => rm(folder, { recursive: true, force: true }))
  await chmod(folder, 0o755) // As root, Postgres runs as another user.
  const postgres = await startPostgres({ dataFolder: join(folder, 'data') })
  stops.push(() => postgres.stop())
  await migrate(postgres.url)
  const { validatorUrl, managementUrl } = await ensureServiceLogins(postgres.url, 'keyward_cluster')
  const operatorToken = randomBytes(32).toString('base64url')
  const masterKey = randomBytes(32).toString('base64')
  const urls = { databaseUrl: managementUrl, validatorUrl }
  const cluster = await startCluster({ ...urls, operatorToken, masterKey, edgePort: EDGE_PORT })
  stops.push(() => cluster.stop())
  const certificate = join(folder, 'certificate.pem')
  await writeFile(certificate, cluster.certificate)
  const [management] = cluster.managements
  const access = { url: `http://127.0.0.1:${management?.service.port}`, operatorToken }
  const { demo } = await ensureDemo(access, undefined, () => Promise.resolve())
  process.stdout.write(readyMessage(cluster, certificate, operatorToken, demo))
}

function readyMessage(cluster: Cluster, certificate: string, operatorToken: string, demo: Demo): string {
  const check = JSON.stringify({ license: demo.licenseKey, fingerprint: 'my-machine' })
  const metrics = [...cluster.validators, ...cluster.managements].map(
    ({ name, service }) => `  ${name}: http://127.0.0.1:${service.adminPort}/metrics`,
  )
  return `
Three validators and two management processes are ready behind ${cluster.baseUrl} (${(performance.now() / 1_000).toFixed(1)} s)

Check the demo license. The verdict is VALID:

  curl --cacert ${certificate} ${cluster.baseUrl}/api/v2/license/validate -H 'authorization: Bearer ${demo.apiKey}' -d '${check}'

Show the validators:

  NODE_EXTRA_CA_CERTS=${certificate} KEYWARD_OPERATOR_TOKEN=${operatorToken} npm run keyward -- --url ${cluster.baseUrl} status

Metrics for Prometheus:

${metrics.join('\n')}
  haproxy: ${cluster.metricsUrl}

Stop with Ctrl-C.
`
}

async function stopAll(): Promise<void> {
  for (const stop of stops.splice(0).toReversed()) await stop()
}

const stop = onStop(stopAll, { limitMs: 40_000 })
main().catch((error: unknown) => {
  process.stderr.write(`${explainStart(error, effectiveVariables(variables))}\n`)
  stop(1)
})
