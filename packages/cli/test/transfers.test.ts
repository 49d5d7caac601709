/** Tests the imports and exports of files against the real service. */

import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import { identified, openVendorShell, type VendorShell } from './vendor-shell.ts'

let vendor: VendorShell
let shell: VendorShell['shell']
let result: VendorShell['result']

beforeAll(async () => {
  vendor = await openVendorShell()
  ;({ shell, result } = vendor)
})
afterAll(() => vendor.close())

test('saves all matches of a list as CSV or JSON lines, and no file for a rejected export', async () => {
  const product = await result(identified, 'product', 'create', 'Editor')
  const customer = await result(identified, 'customer', 'create', 'ada@example.com')
  const flags = ['--product', product.id, '--customer', customer.id]
  const { id, key } = await result(identified.extend({ key: z.string() }), 'license', 'create', ...flags)
  const folder = await mkdtemp(join(tmpdir(), 'keyward-export-'))
  const file = (name: string) => join(folder, name)
  await result(z.unknown(), 'license', 'list', '--key-prefix', key, '--export', file('licenses.jsonl'))
  expect(JSON.parse(await readFile(file('licenses.jsonl'), 'utf8'))).toMatchObject({ id, key })
  const saved = await result(z.object({ bytes: z.int() }), 'customer', 'list', '--export', file('customers.csv'))
  const customers = await readFile(file('customers.csv'), 'utf8')
  expect(customers).toMatch(/^id,email,.*\r\n.*,ada@example\.com,/)
  expect(saved.bytes).toBe(customers.length)
  await result(z.unknown(), 'machine', 'find', '--id', 'none', '--export', file('machines.csv'))
  await result(z.unknown(), 'audit-log', '--action', 'machine.exported', '--export', file('log.jsonl'))
  expect(JSON.parse(await readFile(file('log.jsonl'), 'utf8'))).toMatchObject({ changes: { machineId: 'none' } })
  expect((await shell.cli('license', 'list', '--product', 'x', '--export', file('none.csv'))).code).not.toBe(0)
  expect((await shell.cli('license', 'list', '--export', file('none.xml'))).err).toContain('.csv or .jsonl')
  expect((await readdir(folder)).toSorted()).toEqual(['customers.csv', 'licenses.jsonl', 'log.jsonl', 'machines.csv'])
  await rm(folder, { recursive: true })
})

test('imports licenses from CSV and JSON lines, names the rows with errors, and skips what exists', async () => {
  await result(identified, 'product', 'create', 'Studio')
  const heading = 'product;email;key;status;machines;type;expiresAt;order'
  const rows = [
    'Studio;"new@example.com";FILE-1;suspended;"m1\nm2";;;A-1',
    'Studio;new@example.com;FILE-2;;;TRIAL;2099-01-01;"a ""b"""',
  ]
  await shell.write('bad.csv', `${heading}\n${rows[0]}\nNone;x@example.com;;;;;;\nStudio;nobody;;odd;;;;\n`)
  const bad = await shell.cli('license', 'import', 'bad.csv', '--create-customers')
  expect(bad.err).toContain('2 of 3 rows are invalid. Nothing was sent')
  expect(bad.err).toContain('line 4: product: no product has the name or id "None"')
  expect(bad.err).toMatch(/line 5: .*customer\.email must be an e-mail address/)
  await shell.write('good.csv', `\uFEFF${heading}\r\n${rows.join('\r\n')}\r\n`)
  const unknown = await shell.cli('license', 'import', 'good.csv')
  expect(unknown.err).toContain('line 3: customer must be an existing customer, unless createCustomers is true')
  const imported = ['license', 'import', 'good.csv', '--create-customers']
  const sum = z.object({ created: z.int(), skipped: z.int(), createdCustomers: z.int() })
  expect(await result(sum, ...imported)).toEqual({ created: 2, skipped: 0, createdCustomers: 1 })
  expect(await result(sum, ...imported)).toEqual({ created: 0, skipped: 2, createdCustomers: 0 })
  const [first] = await result(z.array(z.looseObject({})), 'license', 'list', '--key-prefix', 'FILE-1')
  expect(first).toMatchObject({ status: 'suspended', machines: { used: 2 }, metadata: { order: 'A-1' } })
  const { productId, customerId } = z.object({ productId: z.string(), customerId: z.string() }).parse(first)
  const more = ['FILE-2', 'FILE-3'].map((key) =>
    JSON.stringify({ productId, customerId, key, policy: { type: 'PERPETUAL' } }),
  )
  await shell.write('more.jsonl', more.join('\n'))
  expect(await result(sum, 'license', 'import', 'more.jsonl')).toEqual({ created: 1, skipped: 1, createdCustomers: 0 })
  // The service stores the error for the key of this batch, and the corrected command sends the same batch.
  const setQuotas = (quotas: object) =>
    vendor.database.pool.query('update organizations set quotas = $1', [JSON.stringify(quotas)])
  await shell.write('later.csv', `product;customerId;key\nStudio;${customerId};FILE-4\n`)
  await setQuotas({ licenses: 1 })
  expect((await shell.cli('license', 'import', 'later.csv')).err).toContain('QUOTA_EXCEEDED')
  await setQuotas({})
  expect(await result(sum, 'license', 'import', 'later.csv')).toEqual({ created: 1, skipped: 0, createdCustomers: 0 })
  await shell.write('exported.jsonl', JSON.stringify(first))
  expect(await result(sum, 'license', 'import', 'exported.jsonl')).toEqual({
    created: 0,
    skipped: 1,
    createdCustomers: 0,
  })
})
