/** Tests `apply` and `export` against the real service. */

import { readFileSync } from 'node:fs'

import { createTestDatabase, type TestDatabase } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import { openShell, type TestShell } from './run-cli.ts'
import { type RunningService, startProgram } from './services.ts'

const OPERATOR_TOKEN = 'operator-token-of-these-tests-only'

let database: TestDatabase
let management: RunningService
let shell: TestShell

/** Creates an organization, whose token the next commands use. */
async function enterOrganization(name: string): Promise<void> {
  const { out } = await shell.cli('--json', 'org', 'create', name, '--plan', 'STANDARD')
  shell.env['KEYWARD_TOKEN'] = z.object({ managementToken: z.string() }).parse(JSON.parse(out)).managementToken
}

/** A list whose aliases expand to a billion items. */
const ALIASES = Array.from({ length: 9 }, (_, i) =>
  i === 0
    ? 'a0: &a0 [x]'
    : `a${i}: &a${i} [${Array(10)
        .fill(`*a${i - 1}`)
        .join(', ')}]`,
).join('\n')

const apply = (...args: string[]) => shell.cli('apply', '--file', 'keyward.yaml', '--wait', '0', ...args)

beforeAll(async () => {
  database = await createTestDatabase()
  shell = await openShell()
  const env = { PATH: process.env['PATH'] ?? '', KEYWARD_DATABASE_URL: database.url }
  management = await startProgram('management', {
    ...env,
    KEYWARD_OPERATOR_TOKEN: OPERATOR_TOKEN,
    KEYWARD_MASTER_KEY: 'ab'.repeat(32),
  })
  shell.env['KEYWARD_URL'] = management.url
  shell.env['KEYWARD_OPERATOR_TOKEN'] = OPERATOR_TOKEN
})
afterAll(async () => {
  await management.stop()
  await shell.clear()
  await database.drop()
})

/** The file of the guide. */
const guide = readFileSync(new URL('../../../docs/guides/configuration-file.md', import.meta.url), 'utf8')
const FILE = /^```yaml\n(.*?)^```$/ms.exec(guide)?.[1] ?? ''

test('a file is applied once, and changes are shown before', async () => {
  await enterOrganization('Once')
  await shell.write('keyward.yaml', FILE)
  const preview = await apply('--dry-run')
  const created = [
    '+ product Studio',
    '+ template Yearly of Studio',
    '+ template Trial of Studio',
    '+ product Viewer',
    '+ webhook endpoint https://hooks.example.com/keyward',
    '+ set offices',
    '    2 rules added, 0 removed, 0 kept',
    '+ set abuse',
    '    2 rules added, 0 removed, 0 kept',
  ]
  expect(preview).toEqual({ code: 2, out: `${created.join('\n')}\n`, err: '' })
  expect((await shell.cli('product', 'list')).out).toBe('None.\n')

  const applied = await apply()
  expect(applied).toMatchObject({ code: 0, err: `${created.join('\n')}\n\n` })
  expect(applied.out).toMatch(/^Made 7 changes\.\nThe secret of https:\/\/hooks\.example\.com\/keyward is whsec_\S+\n$/)
  expect(await apply()).toEqual({ code: 0, out: 'Nothing has changed.\n', err: '' })
  expect(await apply('--dry-run')).toEqual({ code: 0, out: 'Nothing would change.\n', err: '' })

  const edited = FILE.replace('seats: 5', 'seats: 6, beta: true')
    .replace('maxMachines: 3', 'maxMachines: 4')
    .replace('[price_2, price_1]', '[price_1]')
    .replace('license.*, machine.*', 'license.*')
    .replace('198.51.100.0/24', '198.51.100.0/25')
  await shell.write('keyward.yaml', edited)
  const changed = [
    '~ product Studio',
    '    entitlements.seats: 5 → 6',
    '    entitlements.beta: absent → true',
    '~ template Yearly of Studio',
    '    policy.maxMachines: 3 → 4',
    '    priceIds: ["price_1","price_2"] → ["price_1"]',
    '~ webhook endpoint https://hooks.example.com/keyward',
    '    types: ["license.*","machine.*"] → ["license.*"]',
    '~ set offices',
    '    1 rules added, 1 removed, 1 kept',
  ]
  expect(await apply()).toEqual({ code: 0, out: 'Made 4 changes.\n', err: `${changed.join('\n')}\n\n` })
  expect(await apply('--dry-run')).toMatchObject({ code: 0 })
})

test('the export of an organization, applied to an empty one, gives the same export', async () => {
  await enterOrganization('First')
  await shell.write('keyward.yaml', FILE)
  expect((await apply()).code).toBe(0)
  const exported = await shell.cli('export')
  expect(exported.out).toContain('priceIds:')
  await enterOrganization('Second')
  await shell.write('keyward.yaml', exported.out)
  expect((await apply()).code).toBe(0)
  expect(await shell.cli('export')).toEqual(exported)
  const asJson = await shell.cli('--json', 'export')
  await enterOrganization('Third')
  await shell.write('keyward.yaml', asJson.out)
  expect((await apply()).code).toBe(0)
  expect(await shell.cli('export')).toEqual(exported)
})

test('what a file does not name stays, and an empty list needs a flag', async () => {
  await enterOrganization('Partial')
  await shell.write('keyward.yaml', FILE)
  await apply()
  await shell.write('keyward.yaml', 'sets: { offices: [] }')
  const refused = await apply()
  expect(refused).toMatchObject({ code: 2, out: '' })
  expect(refused.err).toMatch(/^The list of the set offices is empty, so all 2 rules of the set would be deleted\./)
  expect(await apply('--allow-empty')).toMatchObject({ code: 0, out: 'Made 1 changes.\n' })
  expect(await apply()).toMatchObject({ out: 'Nothing has changed.\n' })
  const left: unknown = JSON.parse((await shell.cli('--json', 'export')).out)
  expect(left).toMatchObject({ products: { Studio: {}, Viewer: {} }, sets: { abuse: [{}, {}] } })
})

test.each([
  ['products: [', /keyward\.yaml is not YAML: /],
  [ALIASES, /keyward\.yaml is not YAML: Excessive alias count/],
  ['products: { Studio: { entitlments: {} } }', /products\.Studio: .*entitlments/],
  ['products: { "": {} }', /products\./],
  [
    'products: { Studio: { templates: { A: { policy: { type: TRIAL, durationDays: 0 } } } } }',
    /templates\.A\.policy\.durationDays/,
  ],
  ['webhooks: { "https://hooks.example.com": {} }', /webhooks\.https:\/\/hooks\.example\.com\.types/],
  ['sets: { a: [{ value: 300.1.1.1 }] }', /sets\.a\.0: value: "300\.1\.1\.1"/],
  ['sets: { a: [{ value: 192.0.2.1, product: Nothing }] }', /sets\.a\.0: product: Nothing does not exist/],
  ['sets: { a: [{ value: 192.0.2.1, scope: LICENSE }] }', /sets\.a\.0: scopeId/],
  ['set: {}', /set/],
])('names what is wrong and sends nothing: %s', async (text, message) => {
  await enterOrganization('Wrong')
  await shell.write('keyward.yaml', text)
  const { code, out, err } = await apply()
  expect({ code, out }).toEqual({ code: 2, out: '' })
  expect(err).toMatch(message)
  expect(err).not.toMatch(/at .*\.ts:/)
})

test('a name that two products have is refused, and a failed change says what has been made', async () => {
  await enterOrganization('Twins')
  for (const name of ['Studio', 'Studio']) await shell.cli('product', 'create', name)
  await shell.write('keyward.yaml', 'products: { Studio: {} }')
  expect((await apply()).err).toBe('2 products have the name Studio. Rename them first\n')
  expect((await shell.cli('export')).err).toBe('2 products have the name Studio. Rename them first\n')

  const wrong = 'products: { Other: {} }\nwebhooks: { "https://hooks.example.com": { types: [nothing.*] } }'
  await shell.write('keyward.yaml', wrong)
  const failed = await apply()
  expect(failed).toMatchObject({ code: 1 })
  expect(failed.err).toMatch(/webhook endpoint https:\/\/hooks\.example\.com: .*\. 1 of 2 changes have been made/)
  await shell.write('keyward.yaml', wrong.replace('nothing', 'license'))
  expect((await apply()).out).toMatch(/^Made 1 changes\./)
})
