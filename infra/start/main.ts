/**
 * `npm start`: runs all of Keyward on one machine. It starts and migrates Postgres, starts validator and management behind a gateway,
 * creates a demo organization, and prints commands to try. Every child process ends when this process ends, even if this process is killed.
 */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { CONSOLE_FOLDER } from '@keyward/console'
import { effectiveVariables, explainStart, onStop, reportOldNames } from '@keyward/runtime'

import { createDemoData } from '../demo-data/demo-data.ts'
import { ensureDemo, type Demo, inviteDemoMember } from '../shared/demo.ts'
import { choosePorts } from '../shared/ports.ts'
import { untilReady } from '../shared/service-process.ts'
import { readArguments } from './arguments.ts'
import { configSchema, portsOf, readStartConfig, type StartConfig } from './config.ts'
import { startDatabase } from './database.ts'
import { startGateway } from './gateway.ts'
import { alreadyRunsAt, readyMessage, startedAt } from './message.ts'
import { startServiceProcesses, type Secrets } from './service-processes.ts'
import { type DemoFile, FOLDER, openState, type StateStore } from './state.ts'
import { isRunning, verdictOf } from './verdict.ts'

type DemoDataTarget = Demo & Pick<DemoFile, 'managementUrl' | 'operatorToken' | 'databaseUrl'>

/** The functions that stop the database, the services and the gateway, in the order in which these have started. */
const stops: (() => Promise<void>)[] = []
/** The folder that contains `.keyward/`. */
const home = process.cwd()

async function main(): Promise<void> {
  const { wantsDemoData } = readArguments(process.argv.slice(2))
  const given = readStartConfig(process.env)
  reportOldNames(configSchema)
  report('Starting …')
  const store = await openState(home)
  const earlier = await store.readDemoFile()
  if (earlier !== null && (await isRunning(earlier))) {
    if (wantsDemoData) await ensureDemoData(store, earlier)
    await print(alreadyRunsAt(earlier), earlier)
    return stop(0)
  }
  const config = { ...given, ...(await choosePorts(portsOf(given))) }
  const [database] = await Promise.all([startDatabase(config, home, report), ensureConsole()])
  stops.push(database.stop)

  const secrets = chooseSecrets(config, store)
  const { validator, management } = await startServiceProcesses(
    config,
    secrets,
    database,
    join(home, FOLDER, 'index'),
    report,
  )
  stops.push(async () => void (await Promise.all([validator.stop(), management.stop()])))
  const { httpLibrary } = validator.current()
  if (httpLibrary !== undefined) report(`The validator uses ${httpLibrary} on Node ${process.versions.node}.`)
  const validatorUrl = `http://${reachableHost(config.VALIDATOR_HOST)}:${validator.current().port}`
  const managementUrl = `http://${reachableHost(config.MANAGEMENT_HOST)}:${management.current().port}`
  await untilReady('management', management.current().adminPort)
  const access = { url: managementUrl, operatorToken: secrets.operatorToken }
  const { demo, created } = await ensureDemo(access, store.state.demo, (next) => store.saveDemo(next))
  await untilReady('validator', validator.current().adminPort)
  if (created) await untilReplicated(validatorUrl, demo)
  if (wantsDemoData) await ensureDemoData(store, { ...demo, ...access, managementUrl, databaseUrl: database.url })

  const targets = { validator: () => validatorUrl, management: () => managementUrl }
  const gateway = await startGateway(config.GATEWAY_PORT, targets, config.GATEWAY_HOST)
  stops.push(gateway.close)
  const baseUrl = `http://127.0.0.1:${gateway.port}`
  const { operatorToken } = secrets
  const file = { baseUrl, validatorUrl, managementUrl, operatorToken, ...demo, databaseUrl: database.url }
  await store.writeDemoFile(file)
  await print(startedAt(file, performance.now()), file)
  process.stdout.write('Stop with Ctrl-C.\n')
}

/** Builds the console if its sources have changed. The published package contains the built console instead of the sources. */
async function ensureConsole(): Promise<void> {
  if (!existsSync(join(CONSOLE_FOLDER, '../src/main.tsx'))) return
  const { buildConsole } = await import('@keyward/console/build')
  await buildConsole()
}

/** Creates the demo data, unless an earlier start has completed it. */
async function ensureDemoData(store: StateStore, target: DemoDataTarget): Promise<void> {
  if (store.state.demoDataIn === target.organizationId) return
  report('Creating the demo data …')
  const access = { url: target.managementUrl, operatorToken: target.operatorToken }
  await createDemoData(access, target, target.databaseUrl)
  await store.saveDemoData(target.organizationId)
}

/** Prints the address of a running installation and commands to try. */
async function print(headline: string, demo: DemoFile): Promise<void> {
  const invitation = await inviteDemoMember({ url: demo.managementUrl, operatorToken: demo.operatorToken }, demo)
  // Passkeys need a host name such as localhost. An address such as 127.0.0.1 does not suffice.
  const signIn = `http://localhost:${new URL(demo.baseUrl).port}${invitation}`
  process.stdout.write(readyMessage(headline, demo, signIn, await verdictOf(demo)))
}

function chooseSecrets(config: StartConfig, store: StateStore): Secrets {
  const { operatorToken, masterKey } = store.state
  return {
    operatorToken: config.OPERATOR_TOKEN ?? operatorToken,
    masterKey: config.MASTER_KEY ?? masterKey,
    masterKeyPrevious: config.MASTER_KEY_PREVIOUS,
  }
}

/** Returns the host at which this machine reaches a service that listens on `host`. */
function reachableHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}

/** Resolves when the validator has the license. The checks contain no machine id, so they claim no slot. */
async function untilReplicated(validatorUrl: string, demo: Demo): Promise<void> {
  for (let attempt = 0; attempt < 500; attempt++) {
    const response = await fetch(`${validatorUrl}/api/v1/validate`, {
      method: 'POST',
      headers: { authorization: `Bearer ${demo.apiKey}` },
      body: JSON.stringify({ licenseKey: demo.licenseKey }),
    })
    if ((await response.text()).includes('FINGERPRINT_REQUIRED')) return
    await sleep(10)
  }
  throw new Error('The validator did not receive the demo license in time')
}

function report(line: string): void {
  process.stderr.write(`${line}\n`)
}

async function stopAll(): Promise<void> {
  for (const stop of stops.splice(0).toReversed()) await stop()
}

/** Stops this process when npm is killed. npm forwards signals, but it cannot forward SIGKILL. */
function stopWithNpm(): void {
  if (process.env['npm_lifecycle_event'] === undefined) return
  const npm = process.ppid
  setInterval(() => (process.ppid === npm ? undefined : stop()), 500).unref()
}

const stop = onStop(stopAll, { limitMs: 30_000 })
stopWithNpm()
main().catch((error: unknown) => {
  report(explainStart(error, effectiveVariables(configSchema)))
  stop(1)
})
