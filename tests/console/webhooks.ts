import { createServer, type Server } from 'node:http'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { created, type Stage } from './stage.ts'

export function webhookTests(open: () => Stage): void {
  describe('webhooks', () => {
    let receiver: Server
    let url = ''
    let status = 500
    const received: string[] = []

    beforeAll(async () => {
      receiver = createServer((request, response) => {
        received.push(String(request.headers['webhook-signature']))
        request.resume().on('end', () => response.writeHead(status).end('the reason of the receiver\u202e\u009b2K'))
      })
      await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
      const address = receiver.address()
      url = `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}/hook`
    })
    afterAll(() => receiver.close())

    async function createEndpoint(stage: Stage, description: string): Promise<void> {
      await stage.open('/webhooks')
      await stage.button('New endpoint').first().click()
      await stage.dialog().getByRole('textbox', { name: 'URL' }).fill(url)
      await stage.dialog().getByRole('textbox', { name: 'Description' }).fill(description)
    }

    test('shows the secret of a new endpoint once, and an API error at the field that it concerns', async () => {
      const stage = open()
      await stage.open('/webhooks')
      await stage.button('New endpoint').first().click()
      await stage.dialog().getByRole('textbox', { name: 'URL' }).fill('ftp://example.com')
      await stage.dialog().getByRole('button', { name: 'New endpoint' }).click()
      await stage
        .dialog()
        .getByText(/must begin with https/)
        .waitFor()
      await stage.page.keyboard.press('Escape')
      await createEndpoint(stage, 'Once')
      await stage.dialog().getByText('Only some events').click()
      await stage.choose('Which events', 'product.*: every product event', stage.dialog())
      await stage.page.keyboard.press('Escape')
      await stage.dialog().getByRole('button', { name: 'New endpoint' }).click()
      const secret = await stage.page.getByText(/^whsec_/).textContent()
      await stage.page.keyboard.press('Escape')
      expect(await stage.page.getByText(secret ?? '').count()).toBe(1)
      await stage.button('I have copied it').click()
      await stage.page.getByRole('heading', { name: 'Once' }).waitFor()
      await stage.page.reload()
      await stage.page.getByText('product.*', { exact: true }).waitFor()
      expect(await stage.page.getByText(/whsec_/).count()).toBe(0)
    })

    test('explains a failed test event, and sends it again after the receiver is corrected', async () => {
      const stage = open()
      await createEndpoint(stage, 'Failing')
      await stage.dialog().getByRole('button', { name: 'New endpoint' }).click()
      await stage.button('I have copied it').click()
      status = 500
      await stage.button('Send a test event').click()
      await stage.dialog().getByText('The endpoint failed with 500.').first().waitFor()
      await stage
        .dialog()
        .getByText(String.raw`the reason of the receiver\u202e\u009b2K`)
        .first()
        .waitFor()
      status = 204
      await stage.dialog().getByRole('button', { name: 'Send again' }).click()
      await stage
        .dialog()
        .getByText(/The endpoint responded with 204/)
        .waitFor()
      await stage.dialog().getByText('Request that Keyward sent').click()
      await stage
        .dialog()
        .getByText(/"type": "ping"/)
        .waitFor()
      await stage.dialog().getByRole('button', { name: 'Close' }).click()
      await stage.cell('Delivered').first().waitFor()
      expect(received.length).toBeGreaterThan(1)
    })

    test('replaces the secret, undoes turning the endpoint off, and sends missed events after a disabled endpoint is turned on', async () => {
      const stage = open()
      const { page } = stage
      await createEndpoint(stage, 'Rotated')
      status = 204
      await stage.dialog().getByRole('button', { name: 'New endpoint' }).click()
      const first = await page.getByText(/^whsec_/).textContent()
      await stage.button('I have copied it').click()
      await stage.button('Replace the secret').click()
      await stage.dialog().getByRole('button', { name: 'Replace the secret' }).click()
      await stage
        .dialog()
        .getByText(/^whsec_/)
        .waitFor()
      expect(await page.getByText(/^whsec_/).textContent()).not.toBe(first)
      await stage.button('I have copied it').click()
      await stage.button('Turn off').click()
      await page.getByText('This endpoint is turned off').waitFor()
      await stage.button('Undo').click()
      await page.getByText('Receives events', { exact: true }).waitFor()
      received.length = 0
      await stage.button('Send a test event').click()
      await stage
        .dialog()
        .getByText(/The endpoint responded with 204/)
        .waitFor()
      expect(received[0]?.split(' ').length).toBe(2)
      status = 410
      await stage.dialog().getByRole('button', { name: 'Send again' }).click()
      await stage.dialog().getByText('The endpoint responded with 410 Gone, which disables it.').waitFor()
      await stage.dialog().getByRole('button', { name: 'Close' }).click()
      await page.getByText('Keyward has disabled this endpoint').waitFor()
      expect(await stage.button('Send a test event').count()).toBe(0)
      status = 204
      await stage.button('Turn on').click()
      await page.getByText('Receives events', { exact: true }).waitFor()
      await stage.button('Send missed events').click()
      await stage.dialog().getByRole('button', { name: 'Send again' }).click()
      await stage.done('again.')
    })

    test('lists the events of a type with the names of their resources, and shows an event as endpoints receive it', async () => {
      const stage = open()
      await stage.api('/products', { name: 'Named in an event' }, created)
      await stage.open('/webhooks/events?type=product.*')
      await stage.cell('Named in an event').first().waitFor()
      expect(await stage.page.getByText(/^license\./).count()).toBe(0)
      await stage.button('Open the event product.created').first().click()
      await stage
        .dialog()
        .getByText(/"name": "Named in an event"/)
        .waitFor()
      await stage.page.reload()
      await stage
        .dialog()
        .getByText(/"name": "Named in an event"/)
        .waitFor()
    })
  })
}
