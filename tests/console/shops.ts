import { createHmac } from 'node:crypto'

import { expect, test } from 'vitest'

import { violationsOf } from './accessibility.ts'
import { created, type Stage } from './stage.ts'

const SECRET = 'whsec_0123456789abcdef'

/** Sends the event of Stripe about a paid invoice with one line. Returns the status of the response. */
async function sendPaid(url: string, id: string, price: string): Promise<number> {
  const at = Math.floor(Date.now() / 1_000)
  const line = { id: `il_${id}`, quantity: 1, period: { end: at + 86_400 }, pricing: { price_details: { price } } }
  const invoice = {
    id: `in_${id}`,
    customer_email: 'buyer@example.com',
    metadata: {},
    lines: { data: [{ ...line, metadata: {} }] },
  }
  const event = { id: `evt_${id}`, type: 'invoice.paid', livemode: false, created: at, data: { object: invoice } }
  const body = JSON.stringify(event)
  const signature = createHmac('sha256', SECRET).update(`${at}.${body}`).digest('hex')
  const headers = { 'content-type': 'application/json', 'stripe-signature': `t=${at},v1=${signature}` }
  return (await fetch(url, { method: 'POST', headers, body })).status
}

export function shopTests(open: () => Stage): void {
  test('connects a shop, shows why an event waits, and creates the license when a template lists the price', async () => {
    const stage = open()
    const { page } = stage
    await stage.open('/shops')
    expect(await violationsOf(page)).toEqual([])
    await stage.button('Connect a shop').first().click()
    await stage.dialog().getByRole('textbox', { name: 'Name' }).fill('Web shop')
    await stage.dialog().getByLabel('Signing secret').fill('short')
    await stage.dialog().getByRole('button', { name: 'Connect' }).click()
    await stage
      .dialog()
      .getByText(/at least 8|8 characters|8 bytes/)
      .waitFor()
    expect(await violationsOf(page)).toEqual([])
    await stage.dialog().getByLabel('Signing secret').fill(SECRET)
    await stage.dialog().getByRole('button', { name: 'Connect' }).click()
    await page.getByRole('heading', { name: 'Web shop' }).waitFor()
    const url = await page.getByText(/^http\S+\/commerce\/\S+\/events$/).innerText()

    expect(await sendPaid(url, 'forged', 'price_none').then(() => sendPaid(url, 'shop1', 'price_of_shop'))).toBe(200)
    await page.reload()
    const row = page.getByRole('row').filter({ hasText: 'price_of_shop' })
    await row.getByText('Waiting', { exact: true }).waitFor()
    expect(await violationsOf(page)).toEqual([])

    const product = await stage.api('/products', { name: 'Sold' }, created)
    const template = { name: 'Sold, yearly', policy: { type: 'PERPETUAL' }, priceIds: ['price_of_shop'] }
    await stage.api(`/products/${product.id}/templates`, template, created)
    await row.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('row').filter({ hasText: 'in_shop1' }).getByText('Done', { exact: true }).waitFor()
    await stage.choose('State', 'Waiting')
    await page.getByText('price_none').waitFor()
    expect(await page.getByText('in_shop1').count()).toBe(0)

    await stage.open('/orders')
    await page.getByRole('row').filter({ hasText: 'in_shop1' }).getByRole('link').first().waitFor()
    await page.goto(url.replace(/\/api\/v1\/commerce\/(\S+)\/events$/, '/console/shops/$1'))
    await stage.button('Change').click()
    await stage.dialog().getByRole('textbox', { name: 'Name' }).fill('Old shop')
    await stage.dialog().getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'Old shop' }).waitFor()
    expect(await sendPaid(url, 'shop2', 'price_of_shop')).toBe(200)
    await stage.button('Delete').click()
    await stage.dialog().getByRole('button', { name: 'Delete' }).click()
    await page.getByText('No shop is connected.').waitFor()
    expect(await sendPaid(url, 'shop3', 'price_of_shop')).toBe(404)
  })
}
