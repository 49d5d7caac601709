/** Tests `@keyward/client/management` of the packed client: its types, and its calls of the real service. */

import { execFile } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { installClient } from './installed.ts'
import { type Programs, startPrograms } from './programs.ts'

const run = promisify(execFile)
const folder = installClient()
let programs: Programs
beforeAll(async () => {
  programs = await startPrograms()
})
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await programs.close()
})

/** Writes a program, checks its types strictly, runs it, and returns its output. */
async function checkAndRun(name: string, program: string): Promise<string> {
  writeFileSync(join(folder, name), program)
  const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc')
  const options = '--noEmit --strict --exactOptionalPropertyTypes --target es2022 --lib es2022,dom --module nodenext'
  const flags = [...options.split(' '), '--ignoreConfig', '--types', '', name]
  const checked = await run(process.execPath, [tsc, ...flags], { cwd: folder }).catch((error: unknown) => error)
  expect(checked).toMatchObject({ stdout: '' })
  const env = { ...process.env, KEYWARD_URL: programs.management.url, KEYWARD_TOKEN: programs.vendor.managementToken }
  return (await run(process.execPath, [name], { cwd: folder, env })).stdout
}

test('runs the example of docs/client/backends.md', async () => {
  const page = readFileSync(new URL('../../../docs/client/backends.md', import.meta.url), 'utf8')
  const [, code = ''] = /```ts\n([^]*?createManagement[^]*?)```/.exec(page) ?? []
  const declared = 'declare const process: { env: Record<string, string> }\n'
  const output = await checkAndRun('example.ts', declared + code)
  expect(output).toMatch(/^[0-9A-Z]{4}(?:-[0-9A-Z]{4}){3}\nNOT_FOUND\n$/)
})

test('has a function with exact types for each operation', async () => {
  const { productId, licenseId, licenseKey, managementToken } = programs.vendor
  const output = await checkAndRun(
    'types.ts',
    `import { createManagement, ManagementError, type Schemas } from '@keyward/client/management'
const keyward = createManagement({ url: '${programs.management.url}/', token: '${managementToken}' })
const product: Schemas['Product'] = await keyward.readProduct({ path: { id: '${productId}' } })
const { data }: { data: Schemas['License'][] } = await keyward.listLicenses({ query: { limit: 1 } })
const license = await keyward.readLicense({ path: { id: '${licenseId}' } })
const once = await keyward.createProduct({ body: { name: 'Once' }, idempotencyKey: 'order-1' })
const again = await keyward.createProduct({ body: { name: 'Once' }, idempotencyKey: 'order-1' })
const gone: undefined = await keyward.deleteProduct({ path: { id: once.id } })
console.log(product.id === '${productId}', data.length === 1 && license.key === '${licenseKey}', once.id === again.id, gone)
const failed = async (call: () => Promise<unknown>) =>
  call().catch((error: unknown) => (error instanceof ManagementError ? error.status + ' ' + error.code : String(error)))
// @ts-expect-error a name is a string
console.log(await failed(() => keyward.createProduct({ body: { name: 7 } })))
// @ts-expect-error the id is missing
console.log(await failed(() => keyward.deleteProduct()))
console.log(await failed(() => keyward.readProduct({ path: { id: '..' } })))
// @ts-expect-error no license has this status
console.log(await failed(() => keyward.listLicenses({ query: { status: 'gone' } })))
console.log(await failed(() => createManagement({ url: '${programs.management.url}', token: 'x' }).listProducts()))
export type Nothing = Parameters<typeof keyward.listValidators>
`,
  )
  expect(output.trim().split('\n')).toEqual([
    'true true true undefined',
    '422 INVALID_REQUEST',
    'TypeError: path.id must be an id; got "undefined".',
    'TypeError: path.id must be an id; got "..".',
    '422 INVALID_REQUEST',
    '401 UNAUTHENTICATED',
  ])
})
