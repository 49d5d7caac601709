/** Tests the commands for products, customers, licenses, machines, rules, API keys and members against the real service. */

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { requestCodeOf } from '@keyward/license-file'
import { insertMachine } from '@keyward/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import { identified, openVendorShell, type VendorShell } from './vendor-shell.ts'

const listed = z.array(identified)

let database: VendorShell['database']
let vendor: VendorShell
let shell: VendorShell['shell']
let result: VendorShell['result']
/** Creates a product, a customer, and a license for two machines. */
async function createLicense(): Promise<{ id: string; key: string; productId: string }> {
  const product = await result(identified, 'product', 'create', 'Editor')
  const customer = await result(identified, 'customer', 'create', 'ada@example.com')
  const flags = ['--product', product.id, '--customer', customer.id, '--max-machines', '2', '--expires', '30d']
  const license = await result(identified.extend({ key: z.string() }), 'license', 'create', ...flags)
  return { ...license, productId: product.id }
}

beforeAll(async () => {
  vendor = await openVendorShell()
  ;({ database, shell, result } = vendor)
})
afterAll(() => vendor.close())
test('creates, changes and applies a template, and issues and moves a license with it', async () => {
  const { id: product } = await result(identified, 'product', 'create', 'Plans')
  const { id: customer } = await result(identified, 'customer', 'create', 'eve@example.com')
  const terms = ['--type', 'TRIAL', '--duration-days', '14', '--max-machines', '3']
  const { id } = await result(identified, 'template', 'create', 'Studio', '--product', product, ...terms)
  const policyOf = z.object({
    id: z.string(),
    templateId: z.string().nullable(),
    policy: z.record(z.string(), z.unknown()),
  })
  const create = ['license', 'create', '--template', id, '--customer', customer, '--wait', '0']
  const license = await result(policyOf, ...create)
  expect(license).toMatchObject({ templateId: id, policy: { type: 'TRIAL', durationDays: 14, maxMachines: 3 } })
  expect((await result(policyOf, ...create, '--max-machines', '9')).policy).toMatchObject({ maxMachines: 9 })
  expect(await result(listed, 'template', 'list', product)).toEqual([{ id }])
  await result(identified, 'template', 'change', id, '--max-machines', '5')
  const preview = await shell.cli('template', 'apply', id, '--dry-run')
  expect(preview.out).toMatch(
    /^1 of 2 licenses would change\.\n1 keep a value of their own, for example:\n  \S+  maxMachines\n$/,
  )
  expect((await shell.cli('template', 'apply', id)).out).toMatch(/^1 of 2 licenses are being changed\./)
  // The job changes the license. A command that has read the license before then gets 412.
  const machinesOf = async () => (await result(policyOf, 'license', 'show', license.id)).policy['maxMachines']
  await expect.poll(machinesOf).toBe(5)
  const other = await result(identified, 'template', 'create', 'Suite', '--product', product)
  const moved = await result(policyOf, 'license', 'move', license.id, '--template', other.id, '--wait', '0')
  expect(moved.templateId).toBe(other.id)
  const apart = await result(policyOf, 'license', 'move', license.id, '--template', 'none', '--wait', '0')
  expect(apart.templateId).toBeNull()
  expect((await shell.cli('template', 'delete', id)).err).toMatch(/\(IN_USE\)/)
  expect((await shell.cli('template', 'delete', other.id)).out).toBe(`Deleted the template ${other.id}.\n`)
})

test('puts an order, and shows its keys', async () => {
  const { id: product } = await result(identified, 'product', 'create', 'Sold')
  const sold = ['--price', 'price_1', '--on-refund', 'none']
  await result(identified, 'template', 'create', 'Solo', '--product', product, ...sold)
  const line = z.object({ state: z.string(), licenses: z.array(z.object({ key: z.string(), status: z.string() })) })
  const put = ['order', 'put', 'shop', '7', '1', '--email', 'ada@example.com', '--price', 'price_1', '--wait', '0']
  const paid = await result(line, ...put, '--state', 'paid')
  const key = paid.licenses[0]?.key ?? ''
  expect(await result(line, ...put, '--state', 'refunded')).toEqual({
    state: 'refunded',
    licenses: [{ key, status: 'active' }],
  })
  expect((await shell.cli('order', 'show', 'shop', '7')).out).toMatch(
    new RegExp(`^SHOP.*\\nshop +7 +1 +refunded +${key}\\n$`),
  )
  expect(await result(z.array(line), 'order', 'list', '--state', 'refunded')).toHaveLength(1)
})

test('creates and lists products', async () => {
  const { id } = await result(identified, 'product', 'create', 'Viewer')
  expect((await result(listed, 'product', 'list'))[0]).toEqual({ id })
  const printed = await shell.cli('product', 'list', '--limit', '1')
  expect(printed.out).toMatch(/^ID +NAME +CREATED\n\S+ +Viewer +\S+\n$/)
})

test('lists more than one page and prints a note when there are more items', async () => {
  await Promise.all(Array.from({ length: 105 }, (_, number) => shell.cli('product', 'create', `Many ${number}`)))
  expect(await result(listed, 'product', 'list', '--limit', '103')).toHaveLength(103)
  const printed = await shell.cli('product', 'list', '--limit', '3')
  expect(printed.err).toMatch(/a higher --limit/)
  expect(printed.out.trim().split('\n')).toHaveLength(4)
})

test('creates customers and finds them by e-mail address and external id', async () => {
  const flags = ['--name', 'Grace', '--external-id', 'crm-1']
  const { id } = await result(identified, 'customer', 'create', 'grace@example.com', ...flags)
  expect(await result(listed, 'customer', 'list', '--email', 'grace@example.com')).toEqual([{ id }])
  expect(await result(listed, 'customer', 'list', '--external-id', 'crm-1')).toEqual([{ id }])
  expect((await shell.cli('customer', 'list', '--email', 'nobody@example.com')).out).toBe('None.\n')
  const again = await shell.cli('customer', 'create', 'other@example.com', '--external-id', 'crm-1')
  expect([again.code, again.err]).toEqual([1, expect.stringMatching(/^[^\n]*\(EXTERNAL_ID_EXISTS\)\n$/)])
})

test('merges a customer into another, and waits for validators unless --wait is 0', async () => {
  const create = async (email: string) => (await result(identified, 'customer', 'create', email)).id
  const [first, second, kept] = [
    await create('a@example.com'),
    await create('b@example.com'),
    await create('c@example.com'),
  ]
  const merged = await shell.cli('customer', 'merge', first, kept)
  expect(merged.out).toMatch(new RegExp(`^id +${kept}\\n[^]*\\n\\nNo validator is running\\.\\n$`))
  const { appliedBy } = await result(
    z.object({ appliedBy: z.null() }),
    'customer',
    'merge',
    second,
    kept,
    '--wait',
    '0',
  )
  expect(appliedBy).toBeNull()
})

test.each([
  [['license', 'show', ''], 'INVALID_REQUEST'],
  [['customer', 'list', '--email', ''], 'INVALID_REQUEST'],
  [['license', 'list', '--customer', ''], 'INVALID_REQUEST'],
  [['search', ''], 'INVALID_REQUEST'],
])('rejects an empty value in a lookup: %j', async (args, code) => {
  const { code: exit, out, err } = await shell.cli(...args)
  expect([exit, out, err]).toEqual([1, '', expect.stringContaining(`(${code})`)])
})

test.each(['', '.', '..'])('rejects the id "%s", which would change the path', async (id) => {
  const { code, err } = await shell.cli('customer', 'delete', id)
  expect([code, err]).toEqual([2, `The parameter id must not be ${JSON.stringify(id)}\n`])
})

test('finds licenses by customer and expiry, and machines of all licenses', async () => {
  const { id } = await createLicense()
  const [later, sooner] = ['40d', '20d']
  const matching = ['license', 'list', '--email', 'ADA@example.com', '--sort', 'expiresAt']
  expect(await result(listed, ...matching, '--expires-before', later, '--expires-after', sooner)).toContainEqual({ id })
  expect(await result(listed, ...matching, '--expires-before', sooner)).toEqual([])
  const machine = await insertMachine(database.pool, { licenseId: id, machineId: 'A4-F1', hostname: 'Build-7' })
  expect(await result(listed, 'machine', 'find', '--id', 'A4-F1')).toEqual([{ id: machine }])
  expect(await result(listed, 'machine', 'find', '--hostname', 'build-7')).toEqual([{ id: machine }])
  expect((await shell.cli('machine', 'find', '--id', 'A4')).out).toBe('None.\n')
  const printed = await shell.cli('search', 'build')
  expect(printed.out).toMatch(/^KIND +FOUND +DETAIL +ID\nmachine +A4-F1 +Build-7, license /)
  expect((await shell.cli('search', 'no such thing')).out).toBe('None.\n')
})

describe('a license', () => {
  const shown = z.object({ id: z.string(), status: z.string(), policy: z.object({ expiresAt: z.string() }) })

  test('finds a license by product and status after each change of its status', async () => {
    const { id, key, productId } = await createLicense()
    expect(await result(listed, 'license', 'list', '--product', productId)).toEqual([{ id }])
    const suspended = await result(shown, 'license', 'suspend', key, '--reason', 'Chargeback', '--wait', '0')
    expect(suspended).toMatchObject({ id, status: 'suspended' })
    const filter = ['--product', productId, '--status']
    expect(await result(listed, 'license', 'list', ...filter, 'suspended')).toEqual([{ id }])
    expect(await result(listed, 'license', 'list', ...filter, 'active')).toEqual([])
    expect(await result(shown, 'license', 'reinstate', id, '--wait', '0')).toMatchObject({ status: 'active' })
    const renewed = await result(shown, 'license', 'renew', key, '--expires', '2999-01-01', '--wait', '0')
    expect(renewed.policy.expiresAt).toBe('2999-01-01T00:00:00.000Z')
    const earlier = ['license', 'renew', key, '--expires', '2998-12-31', '--wait', '0']
    expect((await shell.cli(...earlier)).err).toMatch(/must not be earlier than the current expiry/)
    const moved = await result(shown, ...earlier, '--allow-earlier')
    expect(moved.policy.expiresAt).toBe('2998-12-31T00:00:00.000Z')
    const extended = await result(shown, 'license', 'extend', key, '--days', '1', '--wait', '0')
    expect(extended.policy.expiresAt).toBe('2999-01-01T00:00:00.000Z')
    const replaced = await result(shown.extend({ key: z.string() }), 'license', 'replace-key', key, '--wait', '0')
    expect([replaced.id, replaced.key === key]).toEqual([id, false])
    const given = ['--key', key, '--wait', '0']
    expect(await result(identified, 'license', 'replace-key', replaced.key, ...given)).toMatchObject({ id })
    await shell.cli('license', 'revoke', key, '--wait', '0')
    const failed = await shell.cli('license', 'suspend', key, '--wait', '0')
    expect([failed.code, failed.err]).toEqual([1, expect.stringMatching(/\(LICENSE_REVOKED\)/)])
  })

  test('license limits changes only the limits whose options are set', async () => {
    const { key } = await createLicense()
    const limited = z.object({ policy: z.record(z.string(), z.unknown()) })
    const limits = ['license', 'limits', key, '--wait', '0']
    const changed = await result(limited, ...limits, '--lease-seconds', '600', '--max-releases', '3')
    expect(changed.policy).toMatchObject({ maxMachines: 2, leaseSeconds: 600, maxReleases: 3 })
    const removed = await result(limited, ...limits, '--lease-seconds', 'none', '--max-machines', '7')
    expect(removed.policy).toMatchObject({ maxMachines: 7, leaseSeconds: null, maxReleases: 3 })
    expect((await shell.cli(...limits)).err).toMatch(
      /Set --max-machines, --lease-seconds, --max-releases, --grace-days or/,
    )
    const low = await shell.cli(...limits, '--lease-seconds', '5')
    expect([low.code, low.err]).toEqual([1, expect.stringMatching(/--lease-seconds /)])
  })

  test('creates a license with a term of days instead of an expiry', async () => {
    const { productId } = await createLicense()
    const { id: customer } = await result(identified, 'customer', 'create', 'trial@example.com')
    const flags = [
      '--product',
      productId,
      '--customer',
      customer,
      '--type',
      'TRIAL',
      '--duration-days',
      '14',
      '--max-releases',
      '3',
    ]
    const { id, policy } = await result(
      identified.extend({ policy: z.object({ durationDays: z.number() }) }),
      'license',
      'create',
      ...flags,
    )
    expect(policy.durationDays).toBe(14)
    expect((await shell.cli('license', 'show', id)).out).toMatch(
      /^expires +14 days after the first check$[^]*^releases +at most 3 in 30 days$/m,
    )
  })

  test('prints the offline file of a license, or of the machine in a request code, or writes it to --out', async () => {
    const { key } = await createLicense()
    expect((await shell.cli('license', 'file', key)).out).toMatch(/^[\w-]+\.[\w-]{86}\n$/)
    const path = join(shell.folder, 'a.lic')
    expect(await result(z.looseObject({}), 'license', 'file', key, '--out', 'a.lic')).toMatchObject({ path })
    expect(await readFile(path, 'utf8')).toMatch(/^[\w-]+\.[\w-]{86}$/)
    expect(await shell.cli('license', 'file', key, '--out', 'no/such/folder')).toMatchObject({ code: 2 })
    const code = await requestCodeOf({ licenseKey: key, machineId: 'm2', hostname: 'plant-3' })
    expect((await shell.cli('license', 'file', '--request', code)).out).toMatch(/^[\w-]+\.[\w-]{86}\n$/)
    expect((await shell.cli('machine', 'list', key)).out).toMatch(/m2 .*plant-3/)
    expect(await shell.cli('license', 'file', '--request', code.slice(1))).toMatchObject({ code: 2 })
  })

  test('releases slots by machine id and by record id', async () => {
    const { id, key } = await createLicense()
    const insert = `insert into machines (id, license_id, machine_id)
      select gen_random_uuid(), $1, convert_to(name, 'UTF8') from unnest(array['laptop', 'tower']) name`
    await database.pool.query(insert, [id])
    const machines = z.array(z.object({ id: z.string(), machineId: z.string() }))
    const both = await result(machines, 'machine', 'list', key)
    expect(both.map(({ machineId }) => machineId).toSorted()).toEqual(['laptop', 'tower'])
    expect((await shell.cli('machine', 'release', key, 'laptop', '--wait', '0')).out).toBe(
      'Released the slot of laptop.\n',
    )
    const [left] = await result(machines, 'machine', 'list', id)
    expect(left?.machineId).toBe('tower')
    expect((await shell.cli('machine', 'release', id, left?.id ?? '')).code).toBe(0)
    const failed = await shell.cli('machine', 'release', key, 'laptop')
    expect([failed.code, failed.err]).toEqual([1, 'No machine of this license has the id "laptop" (NOT_FOUND)\n'])
  })
})

test('escapes the control characters of a machine id and a host name', async () => {
  const { id, key } = await createLicense()
  const [machineId, hostname] = ['fp\u001b]0;PWNED\u0007', 'host\u001b[1A\u001b[2K\nADA  FAKE ROW \u202e']
  await insertMachine(database.pool, { licenseId: id, machineId, hostname })
  for (const args of [
    ['machine', 'list', key],
    ['machine', 'find', '--id', machineId],
    ['search', 'fp\u001b'],
    ['machine', 'release', key, machineId, '--wait', '0'],
  ]) {
    const { code, out } = await shell.cli(...args)
    expect([code, out]).toEqual([0, expect.stringContaining(String.raw`fp\u001b]0;PWNED\u0007`)])
    expect(out).not.toMatch(/[\p{Cc}\u202e](?<!\n)|^ADA/mu)
  }
})

test('adds, lists and deletes access rules', async () => {
  const { id: licenseId, productId } = await createLicense()
  const wait = ['--wait', '0']
  const network = await result(identified, 'rules', 'add', '203.0.113.7/24', '--note', 'abuse', ...wait)
  const flags = ['--kind', 'EXCLUSION', '--type', 'HWID', '--license', licenseId, '--allow-suspended-or-expired']
  const machine = await result(identified, 'rules', 'add', 'build-server', ...flags, ...wait)
  expect(await result(listed, 'rules', 'list', '--license', licenseId)).toEqual([machine])
  expect(await result(listed, 'rules', 'list', '--product', productId)).toEqual([])
  expect(await result(listed, 'rules', 'list', '--value', '203.0.113.0/24')).toEqual([network])
  expect((await shell.cli('rules', 'list', '--type', 'IP')).out).toMatch(/ 203\.0\.113\.0\/24 +organization +0 .*abuse/)
  const twice = await shell.cli('rules', 'add', '203.0.113.0/24', ...wait)
  expect([twice.code, twice.err]).toEqual([1, expect.stringMatching(/\(RULE_EXISTS\)/)])
  const wrong = await shell.cli('rules', 'add', '10.0.0', ...wait)
  expect([wrong.code, wrong.err]).toEqual([
    2,
    'rule: value: "10.0.0" must be an IPv4 or IPv6 address or a CIDR range\n',
  ])
  expect((await shell.cli('rules', 'delete', network.id, machine.id, ...wait)).out).toBe('Deleted 2 rules.\n')
  expect(await result(listed, 'rules', 'list')).toEqual([])
})

test('sets access rules to decide checks or only count matches', async () => {
  const wait = ['--wait', '0']
  const added = await Promise.all(
    ['192.0.2.1', '192.0.2.2'].map((value) => result(identified, 'rules', 'add', value, '--monitor', ...wait)),
  )
  const ids = added.map(({ id }) => id)
  expect(await result(listed, 'rules', 'list', '--mode', 'MONITOR')).toHaveLength(2)
  const counts = z.object({ updated: z.int(), unchanged: z.int() })
  expect(await result(counts, 'rules', 'set-mode', 'ENFORCE', ...ids, ...wait)).toEqual({ updated: 2, unchanged: 0 })
  expect(await result(listed, 'rules', 'list', '--mode', 'MONITOR')).toEqual([])
  expect((await shell.cli('rules', 'set-mode', 'OFF', ...ids)).code).toBe(2)
  await result(counts, 'rules', 'set-mode', 'MONITOR', ...ids, ...wait)
  const estimate = await shell.cli('rules', 'set-mode', 'ENFORCE', ...ids, '--dry-run')
  expect(estimate.out).toMatch(
    /^2 rules would change to ENFORCE, 0 would not\. Nothing was changed\.\nOf 0 checks since \S+Z, they would have rejected about 0\.\n$/,
  )
  expect(await result(counts, 'rules', 'set-mode', 'ENFORCE', ...ids, ...wait)).toEqual({ updated: 2, unchanged: 0 })
  expect((await shell.cli('rules', 'set-mode', 'MONITOR')).code).toBe(2)
  expect((await shell.cli('rules', 'set-mode', 'MONITOR', ...ids, crypto.randomUUID(), ...wait)).code).toBe(1)
  expect(await result(listed, 'rules', 'list', '--mode', 'MONITOR')).toEqual([])
  await shell.cli('rules', 'delete', ...ids, ...wait)
})

test('filters the audit log and the activity', async () => {
  const { id, key } = await createLicense()
  await shell.cli('license', 'suspend', key, '--wait', '0')
  const actions = z.array(z.object({ action: z.string() }))
  const ofLicense = ['audit-log', '--resource', id, '--resource-type', 'license', '--since', '1h']
  expect(await result(actions, ...ofLicense)).toEqual([{ action: 'license.suspended' }, { action: 'license.created' }])
  expect(await result(actions, ...ofLicense, '--action', 'license.created')).toEqual([{ action: 'license.created' }])
  expect(await result(actions, ...ofLicense, '--until', '1h')).toEqual([])
  expect(await result(actions, 'audit-log', '--actor', id)).toEqual([])
  const types = z.array(z.object({ type: z.string() }))
  expect(await result(types, 'activity', key, '--type', 'LICENSE_SUSPENDED')).toEqual([{ type: 'LICENSE_SUSPENDED' }])
  for (const flags of [
    ['--code', 'BLACKLISTED'],
    ['--machine', 'none'],
    ['--until', '1h'],
  ])
    expect(await result(types, 'activity', key, ...flags)).toEqual([])
  const wrong = await shell.cli('audit-log', '--resource', 'none')
  expect([wrong.code, wrong.err]).toEqual([1, expect.stringMatching(/--resource /)])
})

test('filters alerts', async () => {
  const { id, key } = await createLicense()
  const insert = `insert into alerts (id, organization_id, license_id, kind, count, first_at, last_at, acknowledged_at)
    select gen_random_uuid(), organization_id, id, 'OVERUSE', 1, now(), now(), acknowledged
    from licenses, unnest(array[null, now()]) acknowledged where id = $1`
  await database.pool.query(insert, [id])
  expect(await result(listed, 'alert', 'list', '--license', key)).toHaveLength(2)
  expect(await result(listed, 'alert', 'list', '--license', key, '--open')).toHaveLength(1)
  expect(await result(listed, 'alert', 'list', '--license', (await createLicense()).id)).toEqual([])
})

test('creates, lists and revokes API keys', async () => {
  const created = identified.extend({ secret: z.string(), expiresAt: z.string() })
  const { id, secret } = await result(created, 'api-key', 'create', 'app', '--expires', '1y')
  expect(secret).toMatch(/^kwk_/)
  expect((await shell.cli('api-key', 'list')).out).toMatch(new RegExp(`^${id} +app +kwk_\\S+ +never`, 'm'))
  const revoked = await shell.cli('api-key', 'revoke', id)
  expect(revoked.out).toBe(`Revoked the API key ${id}.\n\nNo validator is running.\n`)
  expect((await result(listed, 'api-key', 'list')).map((one) => one.id)).not.toContain(id)
})

test('creates API keys for one product', async () => {
  const { id: productId } = await result(identified, 'product', 'create', 'Bound')
  const printed = await shell.cli('api-key', 'create', 'bound app', '--product', productId)
  expect(printed.out).toMatch(new RegExp(`^product +${productId}$`, 'm'))
  expect((await shell.cli('api-key', 'list')).out).toMatch(new RegExp(`bound app .* ${productId}$`, 'm'))
  const wrong = await shell.cli('api-key', 'create', 'app', '--product', 'none')
  expect([wrong.code, wrong.out]).toEqual([1, ''])
})

test('replaces a set by an empty file only with --allow-empty, in every format', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'keyward-sets-'))
  const file = async (name: string, content: string) => {
    await writeFile(join(folder, name), content)
    return join(folder, name)
  }
  const full = await file('full.txt', '192.0.2.1\n192.0.2.2\n')
  const empty = {
    'a.txt': '# nothing\n',
    'a.csv': 'type,value\n',
    'a.json': '{"rules":[]}',
    'b.json': '[]',
    'a.jsonl': '',
  }
  for (const [name, content] of Object.entries(empty)) {
    await shell.cli('sets', 'put', 'feed', full, '--wait', '0')
    const put = ['sets', 'put', 'feed', await file(name, content), '--wait', '0']
    const refused = await shell.cli(...put)
    expect([refused.code, refused.err], name).toEqual([2, expect.stringMatching(/all 2 rules of the set feed/)])
    expect(await result(listed, 'rules', 'list', '--set', 'feed')).toHaveLength(2)
    expect((await shell.cli(...put, '--allow-empty')).code, name).toBe(0)
    expect(await result(listed, 'rules', 'list', '--set', 'feed')).toEqual([])
  }
  await shell.cli('sets', 'delete', 'feed', '--wait', '0')
  await rm(folder, { recursive: true })
})

test.each(['json', 'jsonl', 'csv'])('exports and imports machine ids unchanged as %s', async (format) => {
  const folder = await mkdtemp(join(tmpdir(), 'keyward-ids-'))
  const ids = ['\ufeffstart', 'mid\ufeffdle', '=1+1', "'=1", '-x', "'plain", '@a', 'ordinary'].map(
    (id) => `${id} ${format}`,
  )
  const rows = ids.map((value) => ({ kind: 'BLACKLIST', type: 'HWID', value, scope: 'ORGANIZATION' }))
  const [sent, exported] = [join(folder, 'rules.jsonl'), join(folder, `export.${format === 'csv' ? 'csv' : 'json'}`)]
  await writeFile(sent, rows.map((row) => JSON.stringify(row)).join('\n'))
  await shell.cli('sets', 'put', 'ids', sent, '--wait', '0')
  await shell.cli('rules', 'export', exported, '--set', 'ids')
  const text = await readFile(exported, 'utf8')
  expect(text.split(/[\r\n,]/).filter((cell) => /^[=+\-@]/.test(cell))).toEqual([])
  const back = format === 'jsonl' ? join(folder, 'again.jsonl') : exported
  if (format === 'jsonl')
    await writeFile(
      back,
      rulesOf(text)
        .map((rule) => JSON.stringify(rule))
        .join('\n'),
    )
  await shell.cli('sets', 'delete', 'ids', '--wait', '0')
  await shell.cli('rules', 'import', back)
  const listing = z.array(z.object({ value: z.string() }))
  expect((await result(listing, 'rules', 'list', '--set', 'ids')).map(({ value }) => value).toSorted()).toEqual(
    ids.toSorted(),
  )
  await rm(folder, { recursive: true })
})

const rulesOf = (json: string) => z.object({ rules: z.array(z.unknown()) }).parse(JSON.parse(json)).rules

test('names the skipped rows of an import and of a set with the rules that cover them', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'keyward-skipped-'))
  const file = join(folder, 'list.txt')
  const { id } = await result(identified, 'rules', 'add', '198.51.100.7')
  await writeFile(file, '# feed\n198.51.100.6\n198.51.100.7\n198.51.100.7/32\n')
  const skipped = z.object({ skippedRows: z.array(z.object({ where: z.string(), ruleId: z.string() })) })
  const again = await shell.cli('rules', 'import', file)
  expect(again.err).toBe(`\nSkipped, because a rule does all that the row says:\n  line 3: ${id}\n  line 4: ${id}\n`)
  expect((await result(skipped, 'rules', 'import', file)).skippedRows).toHaveLength(3)
  const put = await result(skipped, 'sets', 'put', 'skipping', file, '--wait', '0')
  expect(put.skippedRows).toEqual([{ where: 'line 4', ruleId: expect.any(String) as unknown }])
  await rm(folder, { recursive: true })
})

test('sets the entitlements of products and licenses', async () => {
  const entitled = identified.extend({ entitlements: z.record(z.string(), z.unknown()) })
  const given = ['seats=5', 'edition=pro', 'export=true', 'version="2"'].flatMap((one) => ['--entitlement', one])
  const product = await result(entitled, 'product', 'create', 'Editions', ...given)
  expect(product.entitlements).toEqual({ seats: 5, edition: 'pro', export: true, version: '2' })
  const shown = await shell.cli('product', 'entitle', product.id, '--entitlement', 'version="2"', '--wait', '0')
  expect(shown.out).toMatch(/^entitlements +version="2"$/m)
  const { id } = await createLicense()
  const flags = ['--entitlement', 'seats=50', '--entitlement', 'export=null', '--wait', '0']
  const entitle = ['license', 'entitle', id]
  expect((await result(entitled, ...entitle, ...flags)).entitlements).toEqual({ seats: 50, export: null })
  expect((await result(entitled, ...entitle, '--wait', '0')).entitlements).toEqual({})
  expect((await shell.cli(...entitle, '--entitlement', 'seats')).err).toMatch(/must have the form name=value/)
})

test('creates, lists and deletes members', async () => {
  const { id } = await result(identified, 'member', 'create', 'bob@example.com', '-p', 'licenses.read')
  expect((await shell.cli('member', 'list')).out).toMatch(new RegExp(`^${id} +bob@example.com +licenses.read$`, 'm'))
  expect((await shell.cli('member', 'delete', id)).out).toBe(`Deleted the member ${id}.\n`)
  expect(await result(listed, 'member', 'list')).toEqual([])
  expect(await shell.cli('member', 'delete', id)).toMatchObject({ code: 1 })
})

test('lists signing keys', async () => {
  const unprepared = await shell.cli('keys', 'rotate')
  expect([unprepared.code, unprepared.err]).toEqual([2, expect.stringMatching(/No key is prepared/)])
  await shell.cli('keys', 'rotate', '--unprepared')
  const printed = await shell.cli('keys', 'list')
  expect(printed.out).toMatch(/^KEY ID .*\n[0-9a-f]{16} +signs new files .*\n[0-9a-f]{16} +retired /)
  await shell.cli('keys', 'prepare')
  expect((await shell.cli('keys', 'rotate')).code).toBe(0)
  await shell.cli('keys', 'prepare')
  expect((await shell.cli('keys', 'list')).out).toMatch(/\n[0-9a-f]{16} +prepared .*\n[0-9a-f]{16} +signs new files /)
})
