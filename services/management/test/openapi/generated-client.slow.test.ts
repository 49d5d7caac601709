/** Tests that a TypeScript client generated from `/openapi.json` passes strict checks, and that its calls succeed on the service. */

import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { startHarnessWithValidator } from '../support/harness.ts'
import { createVendor } from '../support/vendor.ts'

const run = promisify(execFile)
const workspace = fileURLToPath(new URL('../..', import.meta.url))
const bin = (name: string) => join(workspace, 'node_modules/.bin', name)

/** A program with the first steps of a vendor and the first check of an app. `@ts-expect-error` marks calls that the types must reject. */
const PROGRAM = `
import createClient from 'openapi-fetch'
import type { components, paths } from './api.ts'

const { VALIDATOR = '', MANAGEMENT = '', API_KEY, TOKEN } = process.env
const vendor = createClient<paths>({ baseUrl: MANAGEMENT, headers: { authorization: \`Bearer \${TOKEN}\` } })
const app = createClient<paths>({ baseUrl: VALIDATOR, headers: { authorization: \`Bearer \${API_KEY}\` } })

const product = (await vendor.POST('/api/v1/products', { body: { name: 'Studio' } })).data?.id ?? ''
const customer = (await vendor.POST('/api/v1/customers', { body: { email: 'ada@example.com' } })).data?.id ?? ''
const policy = { type: 'SUBSCRIPTION', maxMachines: 1, expiresAt: '2999-01-01T00:00:00Z' } as const
const body = { productId: product, customerId: customer, policy }
const created = await vendor.POST('/api/v1/licenses', { body, headers: { Prefer: 'wait=10' } })
const license: components['schemas']['License'] | undefined = created.data
const key = license?.key ?? ''

const valid = await app.POST('/api/v2/license/validate', { body: { license: key, fingerprint: 'laptop' } })
const expiresAt: string | null | undefined = valid.data?.expiresAt
const rejected = await app.POST('/api/v2/license/validate', { body: { license: key, fingerprint: 'tower' } })
const code: string | undefined = rejected.error?.code
const v1 = await app.POST('/api/v1/validate', { body: { licenseKey: key, fingerprint: 'tower' } })
const slots = v1.data?.valid === false ? v1.data.machines : undefined

const machines = await vendor.GET('/api/v1/licenses/{id}/machines', { params: { path: { id: license?.id ?? '' } } })
const missing = await vendor.GET('/api/v1/products/{id}', { params: { path: { id: license?.id ?? '' } } })
const problem: components['schemas']['Problem'] | undefined = missing.error

// @ts-expect-error a name is a string
await vendor.POST('/api/v1/products', { body: { name: 7 } })
// @ts-expect-error no license has this status
export const query = { params: { query: { status: 'gone' } } } satisfies Parameters<typeof vendor.GET<'/api/v1/licenses'>>[1]

console.log(JSON.stringify([expiresAt, code, slots, machines.data?.data[0]?.machineId, problem?.code]))
`

let harness: Awaited<ReturnType<typeof startHarnessWithValidator>>
const folder = mkdtempSync(join(tmpdir(), 'keyward-generated-'))
beforeAll(async () => {
  harness = await startHarnessWithValidator()
})
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await harness.close()
})

test('a generated client passes strict checks, and its calls succeed', async () => {
  const { text } = await harness.call('GET', '/openapi.json', { token: null })
  const modules = join(folder, 'node_modules')
  mkdirSync(modules)
  symlinkSync(join(workspace, 'node_modules/openapi-fetch'), join(modules, 'openapi-fetch'))
  symlinkSync(join(workspace, '../../node_modules/@types'), join(modules, '@types'))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(folder, 'openapi.json'), text)
  writeFileSync(join(folder, 'main.ts'), PROGRAM)
  const generating = ['openapi.json', '--output', 'api.ts', '--default-non-nullable=false']
  await run(bin('openapi-typescript'), generating, { cwd: folder })

  const tsc = join(
    dirname(createRequire(join(workspace, '../../package.json')).resolve('typescript/package.json')),
    'bin/tsc',
  )
  const options = '--noEmit --strict --exactOptionalPropertyTypes --target es2022 --lib es2022,dom --module nodenext'
  const flags = [...options.split(' '), '--allowImportingTsExtensions', '--types', 'node', '--ignoreConfig', 'main.ts']
  const checked = await run(process.execPath, [tsc, ...flags], { cwd: folder }).catch((error: unknown) => error)
  expect(checked).toMatchObject({ stdout: '' })

  const vendor = await createVendor(harness)
  const env = {
    ...process.env,
    MANAGEMENT: harness.origin,
    VALIDATOR: `http://127.0.0.1:${harness.validator.port}`,
    API_KEY: vendor.apiKey,
    TOKEN: vendor.managementToken,
  }
  await expect
    .poll(
      async () =>
        (await fetch(`${env.VALIDATOR}/api/v1/public-keys`, { headers: { authorization: `Bearer ${vendor.apiKey}` } }))
          .status,
    )
    .toBe(200)
  const { stdout } = await run(process.execPath, ['main.ts'], { cwd: folder, env })
  expect(JSON.parse(stdout)).toEqual([
    '2999-01-01T00:00:00.000Z',
    'TOO_MANY_MACHINES',
    { used: 1, max: 1 },
    'laptop',
    'NOT_FOUND',
  ])
})
