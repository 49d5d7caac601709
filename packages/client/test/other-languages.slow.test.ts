/**
 * Runs the client of every language against the contract suite, the vectors, and a real validator and management service.
 * A missing toolchain skips its client.
 */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { ClientProgram, type OpenCommand } from '../contract-suite/protocol.ts'
import { startGateway } from '../contract-suite/service/gateway.ts'
import { type Case, contractCases, runCases, vectorCases } from '../contract-suite/suite.ts'
import { NO_FILE, OFFLINE_VALID, ONLINE_VALID } from '../contract-suite/world.ts'
import { clients } from './clients.ts'
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

describe.each(clients)('the client for $language', ({ language, missing, build }) => {
  const reason = missing()
  let command: string[] = []

  beforeAll(() => {
    if (reason === null) command = build(folder)
  }, 120_000)

  test.skipIf(reason !== null)(`passes all vectors (${reason ?? 'runs here'})`, async () => {
    expect(await failures(command, vectorCases)).toEqual([])
  })

  test.skipIf(reason !== null)(
    `passes all contract cases (${reason ?? 'runs here'})`,
    async () => {
      expect(await failures(command, contractCases)).toEqual([])
    },
    240_000,
  )

  test.skipIf(reason !== null)(`works with the real services (${reason ?? 'runs here'})`, async () => {
    const program = new ClientProgram(command)
    const open = (options: Partial<OpenCommand> = {}) => program.send({ ...openCommand(language), ...options })
    gateway.fault = { kind: 'none' }
    expect(await open()).toEqual({})
    expect(await program.send({ command: 'activate' })).toMatchObject({ ...ONLINE_VALID, expiresAt: EXPIRES_AT })
    expect(await program.send({ command: 'validate' })).toMatchObject({ ...ONLINE_VALID, expiresAt: EXPIRES_AT })
    await open({ machineId: 'another machine' })
    expect(await program.send({ command: 'activate' })).toMatchObject({ valid: false, code: 'TOO_MANY_MACHINES' })
    await open({ licenseKey: 'unknown' })
    expect(await program.send({ command: 'validate' })).toMatchObject({ valid: false, code: 'NOT_FOUND' })
    await open({ apiKey: 'kwk_unknown' })
    expect(await program.send({ command: 'validate' })).toMatchObject({ code: 'CONFIGURATION', reason: 'UNAUTHORIZED' })
    await open()
    expect(await program.send({ command: 'validate' })).toMatchObject(ONLINE_VALID)
    gateway.fault = { kind: 'drop' }
    expect(await program.send({ command: 'validate' })).toMatchObject({ ...OFFLINE_VALID, expiresAt: EXPIRES_AT })
    gateway.fault = { kind: 'none' }
    expect(await program.send({ command: 'deactivate' })).toMatchObject({ code: 'DEACTIVATED' })
    expect(await program.send({ command: 'deactivate' })).toMatchObject({ code: 'NOT_ACTIVE' })
    gateway.fault = { kind: 'drop' }
    expect(await program.send({ command: 'validate' })).toMatchObject({ ...NO_FILE, rejectedAs: 'DEACTIVATED' })
    program.stop()
  })
})

function openCommand(language: string): OpenCommand {
  return {
    command: 'open',
    baseUrl: gateway.url,
    apiKey: programs.vendor.apiKey,
    publicKeys,
    licenseKey: programs.vendor.licenseKey,
    machineId: `machine of ${language}`,
    hostname: null,
    storage: join(folder, `${language}.json`),
    timeoutMs: 9000,
    clockAheadMs: 0,
  }
}

async function failures(command: readonly string[], cases: readonly Case[]): Promise<object[]> {
  const results = await runCases(command, cases)
  expect(results).toHaveLength(cases.length)
  return results.filter(({ problem }) => problem !== null)
}
