/**
 * Runs the client of every language, as installed from its package, against the contract suite, the vectors, and a real validator and
 * management service. Clients without an installed toolchain are skipped.
 */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { ClientProgram, type OpenCommand } from '../contract-suite/protocol.ts'
import { startGateway } from '../contract-suite/service/gateway.ts'
import { BUSY, type CaseResult, contractCases, runCases, vectorCases } from '../contract-suite/suite.ts'
import { NO_FILE, OFFLINE_VALID, ONLINE_VALID } from '../contract-suite/world.ts'
import { buildClient, clients, type ClientUnderTest } from './clients.ts'
import { runExample } from './examples.ts'
import { EXPIRES_AT, startPrograms } from './programs.ts'

const folder = mkdtempSync(join(tmpdir(), 'keyward-clients-'))
const programs = await startPrograms()
const publicKeys = await programs.publicKeys()
const gateway = await startGateway((path) =>
  path.startsWith('/api/v1/licenses') ? programs.management.url : programs.validator.url,
)

afterAll(async () => {
  await gateway.stop()
  await programs.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Returns the folder of the project into which a client is installed. */
const projectOf = (client: ClientUnderTest) => join(folder, client.folder ?? 'typescript')

interface Run {
  command: string[]
  vectors: CaseResult[]
  contract: CaseResult[]
}

/** Builds and runs all clients, two at a time, because they mostly wait for the service. */
const runs = new Map<string, Promise<Run>>()

beforeAll(() => {
  const lanes: Promise<unknown>[] = [Promise.resolve(), Promise.resolve()]
  for (const [position, client] of clients.entries()) {
    const { language, missing } = client
    if (missing() !== null) continue
    const lane = position % lanes.length
    const run = Promise.allSettled([lanes[lane]]).then(async () =>
      runSuite(await buildClient(client, projectOf(client))),
    )
    run.catch(() => undefined)
    runs.set(language, run)
    lanes[lane] = run
  }
})

async function runSuite(command: string[]): Promise<Run> {
  const results = await runCases(command, [...vectorCases, ...contractCases], { ...BUSY, programs: 4 })
  return { command, vectors: results.slice(0, vectorCases.length), contract: results.slice(vectorCases.length) }
}

const page = readFileSync(new URL('../../../docs/client/other-languages.md', import.meta.url), 'utf8')
const passed = (results: readonly CaseResult[] = []) =>
  `${results.filter(({ problem }) => problem === null).length} of ${results.length}`

const failed = (results: readonly CaseResult[] | undefined) => results?.filter(({ problem }) => problem !== null)

describe.each(clients)('the client for $language', (client) => {
  const { language, missing } = client
  const reason = missing()

  test.skipIf(reason !== null)(
    `passes all vectors and all contract cases (${reason ?? 'runs here'})`,
    async () => {
      const run = await runs.get(language)
      expect(failed(run?.vectors), 'vectors').toEqual([])
      expect(failed(run?.contract), 'contract cases').toEqual([])
      for (const { name, skipped } of run?.contract ?? [])
        if (skipped !== null) console.warn(`${name}: skipped, ${skipped}`)
      expect([run?.vectors.length, run?.contract.length]).toEqual([vectorCases.length, contractCases.length])
    },
    240_000,
  )

  test.skipIf(reason !== null || language === 'TypeScript')(
    'has its results in docs/client/other-languages.md',
    async () => {
      const run = await runs.get(language)
      const row = page.split('\n').find((line) => line.startsWith(`| [${language}](`))
      expect(row).toMatch(new RegExp(`\\| ${passed(run?.vectors)} \\| ${passed(run?.contract)} \\|$`))
    },
  )

  test.skipIf(reason !== null)(`works with the real services (${reason ?? 'runs here'})`, async () => {
    const { command } = (await runs.get(language)) ?? { command: [] }
    const program = new ClientProgram(command)
    const open = (options: Partial<OpenCommand> = {}) => program.send({ ...openCommand(language), ...options })
    // The calls are repeated, because a slow machine may not claim a slot within the time budget of the client.
    gateway.fault = { kind: 'none' }
    expect(await open()).toEqual({})
    await expect
      .poll(() => program.send({ command: 'activate' }))
      .toMatchObject({ ...ONLINE_VALID, expiresAt: EXPIRES_AT })
    await expect
      .poll(() => program.send({ command: 'validate' }))
      .toMatchObject({ ...ONLINE_VALID, expiresAt: EXPIRES_AT })
    await open({ machineId: 'another machine' })
    await expect
      .poll(() => program.send({ command: 'activate' }))
      .toMatchObject({ valid: false, code: 'TOO_MANY_MACHINES' })
    await open({ licenseKey: 'unknown' })
    await expect.poll(() => program.send({ command: 'validate' })).toMatchObject({ valid: false, code: 'NOT_FOUND' })
    // Errors are not signed, so they count as an outage if a signature is required.
    await open({ apiKey: 'kwk_unknown', requireSignature: false })
    await expect
      .poll(() => program.send({ command: 'validate' }))
      .toMatchObject({ code: 'CONFIGURATION', reason: 'UNAUTHORIZED' })
    await open()
    await expect.poll(() => program.send({ command: 'validate' })).toMatchObject(ONLINE_VALID)
    gateway.fault = { kind: 'drop' }
    expect(await program.send({ command: 'validate' })).toMatchObject({ ...OFFLINE_VALID, expiresAt: EXPIRES_AT })
    gateway.fault = { kind: 'none' }
    // After a release whose response was late, the client finds no slot. It takes one, and releases this one.
    const release = async () => {
      const released = await program.send({ command: 'deactivate' })
      if (JSON.stringify(released).includes('NOT_ACTIVE')) await program.send({ command: 'activate' })
      return released
    }
    await expect.poll(release).toMatchObject({ code: 'DEACTIVATED' })
    expect(await program.send({ command: 'deactivate' })).toMatchObject({ code: 'NOT_ACTIVE' })
    gateway.fault = { kind: 'drop' }
    expect(await program.send({ command: 'validate' })).toMatchObject({ ...NO_FILE, rejectedAs: 'DEACTIVATED' })
    program.stop()
  })

  test.skipIf(reason !== null || language === 'TypeScript')(
    `runs the example of its README online and offline (${reason ?? 'runs here'})`,
    async () => {
      await runs.get(language)
      gateway.fault = { kind: 'none' }
      const [key] = publicKeys
      const { apiKey, licenseKey, productId } = programs.vendor
      const machineId = `example of ${language}`
      const run = () =>
        runExample(client, projectOf(client), {
          'https://licenses.example.com': gateway.url,
          'kwk_…': apiKey,
          '8a88e3dd7409f195': key?.keyId ?? '',
          'MCowBQYDK2VwAyEA…': key?.publicKey ?? '',
          'XXXX-XXXX-XXXX-XXXX': licenseKey,
          [language === 'PHP' ? "'…'" : '"…"']: `"${machineId}"`,
          '01a2…': productId,
          ...(language !== 'C#' && { '/var/lib/my-app/license.json': join(folder, `example in ${language}.json`) }),
        })
      const online = await run()
      gateway.fault = { kind: 'drop' }
      const offline = await run()
      gateway.fault = { kind: 'none' }
      await fetch(`${programs.validator.url}/api/v1/deactivate`, {
        method: 'POST',
        headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({ licenseKey, fingerprint: machineId }),
      })
      expect([online.trim(), offline.trim()]).toEqual(['online VALID', 'offline VALID'])
    },
    240_000,
  )
})

function openCommand(language: string): OpenCommand {
  return {
    command: 'open',
    baseUrl: gateway.url,
    apiKey: programs.vendor.apiKey,
    publicKeys,
    licenseKey: programs.vendor.licenseKey,
    productId: null,
    machineId: `machine of ${language}`,
    hostname: null,
    storage: join(folder, `${language}.json`),
    timeoutMs: 9000,
    clockAheadMs: 0,
    requireSignature: true,
    entitlements: false,
  }
}
