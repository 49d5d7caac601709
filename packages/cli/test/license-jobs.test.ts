/** Tests the commands for actions on many licenses, links of the portal and mails against the real service. */

import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import { identified, openVendorShell, type VendorShell } from './vendor-shell.ts'

let management: VendorShell['management']
let vendor: VendorShell
let shell: VendorShell['shell']
let result: VendorShell['result']
/** The ids of the product, the customer and the licenses. */
let product: string
let customer: string
let licenses: string[]

const statuses = (): Promise<string[]> =>
  Promise.all(
    licenses.map(async (id) => (await result(z.object({ status: z.string() }), 'license', 'show', id)).status),
  )

beforeAll(async () => {
  vendor = await openVendorShell()
  ;({ management, shell, result } = vendor)
  product = (await result(identified, 'product', 'create', 'Editor')).id
  customer = (await result(identified, 'customer', 'create', 'ada@example.com')).id
  const terms = ['--product', product, '--customer', customer, '--max-machines', '2', '--wait', '0']
  licenses = []
  for (let i = 0; i < 3; i++) licenses.push((await result(identified, 'license', 'create', ...terms)).id)
})
afterAll(() => vendor.close())

test('shows what an action on many licenses would change, starts it, and undoes it', async () => {
  const start = ['license-job', 'start', 'suspend', '--product', product, '--reason', 'not paid']
  expect((await shell.cli(...start, '--dry-run')).out).toMatch(/^3 of 3 licenses would change\./)
  expect(await statuses()).toEqual(['active', 'active', 'active'])
  expect((await shell.cli(...start, '--expected-total', '2')).err).toMatch(/must be 3, the number of licenses/)
  expect(await statuses()).toEqual(['active', 'active', 'active'])
  const { id } = await result(identified, ...start, '--expected-total', '3')
  const state = z.object({ state: z.string(), changed: z.int(), restored: z.int() })
  const show = () => result(state, 'license-job', 'show', id)
  await expect.poll(show).toMatchObject({ state: 'completed', changed: 3 })
  expect(await statuses()).toEqual(['suspended', 'suspended', 'suspended'])
  expect((await shell.cli('license-job', 'list')).out).toMatch(
    new RegExp(`^ACTION.*\\nsuspend +completed +3 of 3 +3 +${id}\\n$`),
  )
  await result(identified, 'license-job', 'undo', id)
  await expect.poll(show).toMatchObject({ state: 'undone', restored: 3 })
  expect(await statuses()).toEqual(['active', 'active', 'active'])
})

test('rejects a job without a selection, and an option of another action', async () => {
  expect((await shell.cli('license-job', 'start', 'suspend')).err).toMatch(/Select licenses with options/)
  expect((await shell.cli('license-job', 'start', 'suspend', '--all', '--days', '3')).err).toMatch(
    /do not fit "suspend"/,
  )
})

test('creates a link of the portal, and ends it', async () => {
  const link = z.object({ url: z.string() })
  const { url } = await result(link, 'customer', 'portal', customer, '--release')
  const code = url.slice(url.indexOf('#') + 1)
  await result(z.object({ ended: z.literal(customer) }), 'customer', 'portal-end', customer)
  const opened = await fetch(`${management.url}/api/v1/portal/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code }),
  })
  expect(opened.status).toBe(401)
})

test('sends no mail without a mail server, and says so', async () => {
  expect((await shell.cli('mail', 'send-key', licenses[0] ?? '')).err).toMatch(/\(NOT_ENABLED\)/)
  expect(await result(z.array(identified), 'mail', 'list')).toEqual([])
})
