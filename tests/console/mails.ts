import { expect, test } from 'vitest'
import { z } from 'zod'

import { violationsOf } from './accessibility.ts'
import { created, type Stage } from './stage.ts'

export function mailTests(open: () => Stage): void {
  test('switches mails on, sends a key by mail, and shows why the mail has not arrived', async () => {
    const stage = open()
    const { page } = stage
    await stage.open('/mails')
    await page.getByText('Orders send no mail.').waitFor()
    await stage.button('Settings').click()
    await stage.dialog().getByRole('switch', { name: 'Send the keys of an order' }).check()
    await stage.dialog().getByRole('textbox', { name: 'Replies' }).fill('nobody')
    await stage.dialog().getByRole('button', { name: 'Save' }).click()
    await stage.dialog().getByText('must be an e-mail address').waitFor()
    expect(await violationsOf(page)).toEqual([])
    await stage.dialog().getByRole('textbox', { name: 'Replies' }).fill('help@example.com')
    await stage.dialog().getByRole('button', { name: 'Save' }).click()
    await page.getByText('Customers receive the keys of their orders.').waitFor()

    const product = await stage.api('/products', { name: 'Mailed' }, created)
    const customer = await stage.api('/customers', { email: 'mailed@example.com' }, created)
    const body = { productId: product.id, customerId: customer.id, policy: { type: 'PERPETUAL' } }
    const license = await stage.api('/licenses', body, z.object({ id: z.string(), key: z.string() }))
    await stage.open(`/licenses/${license.id}`)
    await stage.button('More actions').click()
    await page.getByRole('menuitem', { name: 'Send the key by mail' }).click()
    await page.getByText('Sending the key to mailed@example.com.').waitFor()
    await stage.open('/mails')
    const row = page.getByRole('row').filter({ hasText: 'mailed@example.com' })
    await row.getByText('The mail server could not be used.').waitFor()
    await row.getByText('Waiting', { exact: true }).waitFor()
    expect(await page.getByText(license.key).count()).toBe(0)
    expect(await violationsOf(page)).toEqual([])
  })
}
