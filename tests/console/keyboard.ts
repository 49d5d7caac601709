/** Defines tests that use the screens for webhooks, deliveries, events and changes with the keyboard alone. */

import { createServer, type Server } from 'node:http'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { type Hands, keyboard } from './hands.ts'
import { created, type Stage } from './stage.ts'

export function keyboardTests(open: () => Stage): void {
  describe('with the keyboard alone', () => {
    let receiver: Server
    let url = ''
    let stage: Stage
    let hands: Hands

    beforeAll(async () => {
      stage = open()
      hands = keyboard(stage.page)
      await stage.context.grantPermissions(['clipboard-read', 'clipboard-write'])
      receiver = createServer((request, response) => request.resume().on('end', () => response.writeHead(204).end()))
      await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
      const address = receiver.address()
      url = `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}/hook`
    })
    afterAll(() => receiver.close())

    const within = (name: string) => stage.dialog().getByRole('button', { name, exact: true })
    const focused = () => stage.page.locator(':focus')

    test('creates an endpoint, copies its secret, opens a delivery, repeats the delivery and turns the endpoint off', async () => {
      const { page } = stage
      await stage.open('')
      await hands.go('Webhooks')
      await page.getByRole('heading', { name: 'Webhooks' }).waitFor()
      await hands.press(stage.button('New endpoint').first())
      await hands.write(stage.dialog().getByRole('textbox', { name: 'URL' }), url)
      await hands.write(stage.dialog().getByRole('textbox', { name: 'Description' }), 'By keyboard')
      await hands.press(within('New endpoint'))
      await page.getByText(/^whsec_/).waitFor()
      // The window of the form closes after the window of the secret opens, and must leave the focus there.
      await within('Copy').and(focused()).waitFor()
      await page.evaluate('new Promise(requestIdleCallback)')
      expect(await within('Copy').and(focused()).count()).toBe(1)
      await hands.press(within('Copy'))
      // The page writes the clipboard after the key press returns.
      await expect.poll(() => page.evaluate('navigator.clipboard.readText()')).toMatch(/^whsec_/)
      await hands.press(within('I have copied it'))
      await page.getByRole('heading', { name: 'By keyboard' }).waitFor()
      await hands.press(stage.button('Send a test event'))
      await stage
        .dialog()
        .getByText(/The endpoint responded with 204/)
        .waitFor()
      await hands.press(within('Send again'))
      await stage.done('Sending the event again.')
      await page.keyboard.press('Escape')
      await stage.dialog().waitFor({ state: 'hidden' })
      await hands.press(stage.button('Open the delivery of ping').last())
      await hands.press(stage.dialog().locator('summary'))
      await stage
        .dialog()
        .getByText(/"type": "ping"/)
        .waitFor()
      await page.keyboard.press('Escape')
      await stage.dialog().waitFor({ state: 'hidden' })
      expect(await focused().getAttribute('aria-label')).toBe('Open the delivery of ping')
      await hands.press(stage.button('Turn off'))
      await page.getByText('This endpoint is turned off').waitFor()
      await hands.press(stage.button('Undo'))
      await page.getByText('Receives events', { exact: true }).waitFor()
    })

    test('filters the events, and opens one of them', async () => {
      const { page } = stage
      await stage.api('/products', { name: 'For the keyboard' }, created)
      await stage.open('/webhooks')
      await hands.press(stage.link('Events'))
      await hands.choose(page.getByRole('combobox', { name: 'About' }), '', 'Products')
      await page.waitForURL('**/webhooks/events?type=product.*')
      await hands.press(stage.button('Open the event product.created').first())
      await stage
        .dialog()
        .getByText(/"name": "For the keyboard"/)
        .waitFor()
      await page.keyboard.press('Escape')
      await stage.dialog().waitFor({ state: 'hidden' })
      expect(await focused().getAttribute('aria-label')).toBe('Open the event product.created')
    })

    test('opens a license from a list, and then the changes of the license', async () => {
      const { page } = stage
      const id = await stage.addLicense('KEYB-0000-0000-0001', 'keyb@example.com')
      await stage.api(`/licenses/${id}`, { policy: { maxMachines: 3 } }, created, 'PATCH')
      await stage.open('')
      await hands.go('Changes')
      await hands.choose(page.getByRole('combobox', { name: 'About' }), '', 'License')
      await hands.press(stage.link('KEYB-0000-0000-0001').first())
      await page.getByRole('heading', { name: 'KEYB-0000-0000-0001', exact: true }).waitFor()
      await hands.act('History')
      await page.getByText('Only changes of KEYB-0000-0000-0001.').waitFor()
      await page.getByText('Machines at the same time 1 → 3').waitFor()
      expect(await page.locator('tbody tr').count()).toBe(2)
      await hands.press(stage.button('Clear the filters'))
      await page.getByText('Only changes of KEYB-0000-0000-0001.').waitFor({ state: 'hidden' })
      await stage.open('/licenses')
      await hands.press(stage.link('keyb@example.com'))
      await page.getByRole('heading', { name: 'keyb@example.com' }).waitFor()
    })
  })
}
