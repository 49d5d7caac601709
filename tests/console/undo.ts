/** Defines the tests of "Undo" after a change of a license's term, a customer, a product, a member and a webhook endpoint. */

import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import { created, type Stage } from './stage.ts'

const renewed = z.object({ policy: z.object({ expiresAt: z.string().nullable() }) })
const customer = z.object({ email: z.string(), name: z.string().nullable(), externalId: z.string().nullable() })
const product = z.object({ name: z.string(), entitlements: z.record(z.string(), z.unknown()) })
const members = z.object({ data: z.array(z.object({ email: z.string(), permissions: z.array(z.string()) })) })
const endpoint = z.object({ url: z.string(), types: z.array(z.string()), description: z.string().nullable() })

/** Presses "Undo" and waits until the change is reverted. */
async function undo(stage: Stage): Promise<void> {
  await stage.button('Undo').last().click()
  await stage.done('Undone.')
}

export function undoTests(open: () => Stage): void {
  describe('undo', () => {
    test('restores the former end of a renewed license', async () => {
      const stage = open()
      const { id: productId } = await stage.api('/products', { name: 'Renewed' }, created)
      const { id: customerId } = await stage.api('/customers', { email: 'renew@example.com' }, created)
      const policy = { type: 'SUBSCRIPTION', maxMachines: 1, expiresAt: '2031-05-06T07:08:09.000Z' }
      const { id } = await stage.api('/licenses', { productId, customerId, policy }, created)
      await stage.open(`/licenses/${id}`)
      await stage.button('Renew').click()
      const renew = stage.dialog().getByRole('button', { name: 'Renew', exact: true })
      await stage.dialog().getByLabel('Expires').fill('2020-01-01')
      await renew.click()
      await stage.dialog().getByText('This day is over. Choose a day in the future.').waitFor()
      await stage.dialog().getByLabel('Expires').fill('2031-01-01')
      await renew.click()
      await stage
        .dialog()
        .getByText(/^The license ends on .* already/)
        .waitFor()
      expect((await stage.read(`/licenses/${id}`, renewed)).policy.expiresAt).toBe(policy.expiresAt)
      await stage.dialog().getByLabel('Expires').fill('2032-01-01')
      await renew.click()
      await stage.done('Renewed the license.')
      expect((await stage.read(`/licenses/${id}`, renewed)).policy.expiresAt).toBe('2032-01-02T00:00:00.000Z')
      await undo(stage)
      expect((await stage.read(`/licenses/${id}`, renewed)).policy.expiresAt).toBe('2031-05-06T07:08:09.000Z')
    })

    test('restores the former e-mail address, name and external id of a customer', async () => {
      const stage = open()
      const before = { email: 'before@example.com', name: 'Before', externalId: 'undo-1' }
      const { id } = await stage.api('/customers', before, created)
      await stage.open(`/customers/${id}`)
      await stage.button('Edit').click()
      await stage.dialog().getByRole('textbox', { name: 'E-mail' }).fill('after@example.com')
      await stage.dialog().getByRole('textbox', { name: 'Name' }).fill('After')
      await stage.dialog().getByRole('textbox', { name: 'External id' }).fill('')
      await stage.dialog().getByRole('button', { name: 'Save' }).click()
      await stage.done('Saved the customer.')
      const after = { email: 'after@example.com', name: 'After', externalId: null }
      expect(await stage.read(`/customers/${id}`, customer)).toEqual(after)
      await undo(stage)
      expect(await stage.read(`/customers/${id}`, customer)).toEqual(before)
      await stage.page.getByRole('heading', { level: 1, name: 'Before' }).waitFor()
    })

    test('restores the former name and entitlements of a product', async () => {
      const stage = open()
      const before = { name: 'Product before', entitlements: { seats: 3 } }
      const { id } = await stage.api('/products', before, created)
      await stage.open(`/products/${id}`)
      await stage.button('Change').click()
      await stage.dialog().getByRole('textbox', { name: 'Name' }).first().fill('Product after')
      const save = stage.dialog().getByRole('button', { name: 'Save' })
      await stage.dialog().getByRole('textbox', { name: 'Value' }).fill('four')
      expect(await save.isDisabled()).toBe(true)
      await stage.dialog().getByRole('textbox', { name: 'Value' }).fill('4')
      await save.click()
      await stage.done('Saved the product.')
      expect(await stage.read(`/products/${id}`, product)).toEqual({
        name: 'Product after',
        entitlements: { seats: 4 },
      })
      await undo(stage)
      expect(await stage.read(`/products/${id}`, product)).toEqual(before)
    })

    test('restores the former permissions of a member', async () => {
      const stage = open()
      const email = 'permissions@example.com'
      const permissionsOf = async () =>
        (await stage.read('/members', members)).data.find((one) => one.email === email)?.permissions
      await stage.api('/members', { email, permissions: ['licenses.read'] }, created)
      await stage.open('/team')
      const row = stage.page.getByRole('row').filter({ hasText: email })
      await row.getByRole('button', { name: 'Change' }).click()
      await stage.dialog().getByRole('checkbox', { name: 'See products' }).click()
      await stage.dialog().getByRole('button', { name: 'Save' }).click()
      await stage.done('Saved the member.')
      expect(await permissionsOf()).toEqual(['licenses.read', 'products.read'])
      await undo(stage)
      expect(await permissionsOf()).toEqual(['licenses.read'])
    })

    test('restores the former URL, event types and description of an endpoint', async () => {
      const stage = open()
      const before = { url: 'http://127.0.0.1:9/before', types: ['license.*'], description: 'Before' }
      const { id } = await stage.api('/webhook-endpoints', before, created)
      await stage.open(`/webhooks/${id}`)
      await stage.button('Change').click()
      await stage.dialog().getByRole('textbox', { name: 'URL' }).fill('http://127.0.0.1:9/after')
      await stage.dialog().getByText('Every event').click()
      await stage.dialog().getByRole('textbox', { name: 'Description' }).fill('')
      await stage.dialog().getByRole('button', { name: 'Save' }).click()
      await stage.done('Saved the endpoint.')
      const after = { url: 'http://127.0.0.1:9/after', types: ['*'], description: null }
      expect(await stage.read(`/webhook-endpoints/${id}`, endpoint)).toEqual(after)
      await undo(stage)
      expect(await stage.read(`/webhook-endpoints/${id}`, endpoint)).toEqual(before)
    })
  })
}
