/** Tests actions on many licenses, which run as jobs of the service (docs/api.md#j1). */

import type { Page, Route } from 'playwright-core'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import { violationsOf } from './accessibility.ts'
import { keyboard } from './hands.ts'
import { created, invited, type Stage } from './stage.ts'

const counted = z.object({ total: z.number() })
/** More licenses than three pages of a job, so that it can be canceled after its second page. */
const MANY = 650

export function jobTests(open: () => Stage): void {
  describe('actions on many licenses', () => {
    let stage: Stage
    let page: Page

    const totalOf = async (query: string) => (await stage.read(`/licenses?total=true&limit=1&${query}`, counted)).total
    const dialogButton = (name: string) => stage.dialog().getByRole('button', { name, exact: true })
    const selectAll = () => page.getByRole('checkbox', { name: 'Select all' }).click()
    /** The line with the result of a job. */
    const result = (text: string, of = page) => of.getByRole('region', { name: text, exact: true })

    async function addMany(prefix: string, count: number): Promise<void> {
      const product = await stage.api('/products', { name: `Product of ${prefix}` }, created)
      const customer = await stage.api('/customers', { email: `${prefix.toLowerCase()}@example.com` }, created)
      const row = { productId: product.id, customerId: customer.id, policy: { type: 'PERPETUAL' } }
      const licenses = Array.from({ length: count }, (_, at) => ({ ...row, key: `${prefix}-${1_000 + at}` }))
      await stage.api('/licenses/import', { licenses }, z.object({ created: z.literal(count) }))
    }

    /** Stops the job of these licenses in its second page until `release` is called. */
    async function holdSecondPage(prefix: string): Promise<void> {
      const client = await stage.database.pool.connect()
      await client.query('begin')
      // A row lock in the inner query would also lock the rows of the first page.
      const inSecondPage = 'select id from licenses where key like $1 order by id offset 300 limit 1'
      await client.query(`select from licenses where id = (${inSecondPage}) for update`, [`${prefix}-%`])
      release = async () => {
        release = async () => undefined
        await client.query('commit')
        client.release()
      }
    }
    let release = async (): Promise<void> => undefined
    afterEach(() => release())

    beforeAll(async () => {
      stage = open()
      page = stage.page
      await addMany('JOBS', MANY)
    })

    test('suspends all licenses that match, shows the progress in any tab, and undoes the canceled job', async () => {
      await stage.open('/licenses?keyPrefix=JOBS-')
      await selectAll()
      await page.getByRole('region', { name: '50 selected' }).waitFor()
      await stage.button(`Select all ${MANY} that match`).click()
      await page.getByRole('region', { name: `${MANY} selected` }).waitFor()
      await stage.button('Suspend').click()
      await stage.dialog().getByText(`${MANY} of ${MANY} licenses will change.`).waitFor()
      await stage.dialog().getByRole('textbox', { name: 'Reason' }).fill('Chargebacks')
      expect(await violationsOf(page)).toEqual([])
      await holdSecondPage('JOBS')
      await dialogButton('Suspend').click()
      const job = page.getByRole('region', { name: 'Suspending licenses' })
      await job.getByText(`200 of ${MANY} licenses`).waitFor()
      await page.reload()
      await job.getByText(`200 of ${MANY} licenses`).waitFor()
      expect(await violationsOf(page)).toEqual([])

      const reader = await stage.api('/members', { email: 'jobs@example.com', permissions: ['licenses.read'] }, invited)
      const context = await stage.browser.newContext()
      const other = await context.newPage()
      await other.goto(`${stage.origin}${reader.invitation.path}`)
      await other.getByRole('button', { name: 'Accept the invitation' }).click()
      await other.getByRole('link', { name: 'Licenses' }).click()
      const seen = other.getByRole('region', { name: 'Suspending licenses' })
      await seen.getByText(`200 of ${MANY} licenses`).waitFor()
      expect(await seen.getByRole('button').count()).toBe(0)

      await job.getByRole('button', { name: 'Cancel' }).click()
      await release()
      const canceled = page.getByRole('region', { name: /^Canceled after 400\. Suspended 400 of/ })
      await canceled.waitFor()
      expect(await totalOf('keyPrefix=JOBS-&status=suspended')).toBe(400)
      await other.getByRole('region', { name: /^Canceled after 400/ }).waitFor()
      expect(await other.getByRole('button', { name: 'Undo' }).count()).toBe(0)
      expect(await other.getByRole('checkbox').count()).toBe(0)
      await context.close()

      await canceled.getByRole('button', { name: 'Undo' }).click()
      await result('Restored 400 of 400 licenses.').waitFor()
      expect(await result('Restored 400 of 400 licenses.').getByRole('button', { name: 'Undo' }).count()).toBe(0)
      expect(await totalOf('keyPrefix=JOBS-&status=suspended')).toBe(0)
    })

    test('names the licenses that do not allow the action, before and after it', async () => {
      for (const n of [1, 2, 3]) {
        const id = await stage.addLicense(`BULK-0000-0000-000${n}`, 'bulk@example.com')
        if (n === 3) await stage.api(`/licenses/${id}/revoke`, {}, created)
      }
      await stage.open('/licenses?email=bulk%40example.com')
      await selectAll()
      await stage.button('Suspend').click()
      await stage.dialog().getByText('2 of 3 licenses will change.').waitFor()
      await stage.dialog().getByText('1 license will not: a revocation is final.').waitFor()
      await stage.dialog().getByText('BULK-0000-0000-0003').waitFor()
      await dialogButton('Suspend').click()
      const ended = result('Suspended 2 of 3 licenses.')
      await ended.getByText('1 license stayed as it was').click()
      await ended.getByText('BULK-0000-0000-0003: a revocation is final').waitFor()
      expect(await violationsOf(page)).toEqual([])
      expect(await stage.check('BULK-0000-0000-0001', 'm')).toBe('SUSPENDED')
      // The list shows the new states without a reload.
      await page.getByRole('cell', { name: 'Suspended', exact: true }).nth(1).waitFor()
      expect(await page.getByRole('cell', { name: 'Revoked', exact: true }).count()).toBe(1)
      await ended.getByRole('button', { name: 'Undo' }).click()
      await page.getByRole('cell', { name: 'Active', exact: true }).nth(1).waitFor()
    })

    test('starts nothing when more licenses match than the person has confirmed, and shows the new number', async () => {
      await addMany('MORE', 51)
      await stage.open('/licenses?keyPrefix=MORE-')
      await selectAll()
      await stage.button('Select all 51 that match').click()
      await stage.button('More actions').click()
      await page.getByRole('menuitem', { name: 'Delete' }).click()
      await stage.dialog().getByText('51 of 51 licenses will change.').waitFor()
      expect(await dialogButton('Delete').isDisabled()).toBe(true)
      await stage.dialog().getByLabel('Type 51 to confirm').fill('51')
      await stage.addLicense('MORE-2000')
      await dialogButton('Delete').click()
      await page.getByText('must be 52, the number of licenses that are selected now').waitFor()
      await stage.dialog().getByText('52 of 52 licenses will change.').waitFor()
      expect(await dialogButton('Delete').isDisabled()).toBe(true)
      expect(await totalOf('keyPrefix=MORE-')).toBe(52)
    })

    test('forgets the selection and its window when the filters change', async () => {
      await stage.open('/licenses?keyPrefix=MORE-')
      await page.getByRole('link', { name: 'MORE-2000' }).waitFor()
      await page
        .getByRole('navigation', { name: 'Views' })
        .getByRole('link', { name: /^Suspended/ })
        .click()
      await page.goBack()
      await selectAll()
      await stage.button('Select all 52 that match').click()
      await stage.button('Suspend').click()
      await stage.dialog().getByText('52 of 52 licenses will change.').waitFor()
      await page.goForward()
      await stage.dialog().waitFor({ state: 'detached' })
      await page.goBack()
      await page.getByRole('link', { name: 'MORE-2000' }).waitFor()
      expect(await page.getByRole('region', { name: /selected$/ }).count()).toBe(0)
    })

    test('names the whole organization when no filter is set', async () => {
      const total = await totalOf('')
      await stage.open('/licenses')
      await selectAll()
      await stage.button(`Select all ${total.toLocaleString('en')} licenses of the organization`).click()
      await stage.button('Reinstate').click()
      const effect = stage.dialog().getByText(/^\d+ of [\d,]+ licenses will change/)
      expect(await effect.innerText()).toContain(` of ${total.toLocaleString('en')} licenses`)
      expect(await stage.dialog().getByText('Reinstate all licenses of the organization?').count()).toBe(1)
      await page.keyboard.press('Escape')
    })

    const policy = { type: 'SUBSCRIPTION', expiresAt: '2031-01-01T00:00:00.000Z' }
    const ended = z.object({ policy: z.object({ expiresAt: z.string() }) })

    /** Adds licenses of one customer. Returns the id of the last one. */
    async function addSubscriptions(email: string, count: number): Promise<string> {
      const product = await stage.api('/products', { name: `Product of ${email}` }, created)
      const customer = await stage.api('/customers', { email }, created)
      const body = { productId: product.id, customerId: customer.id, policy }
      for (let n = 1; n < count; n++) await stage.api('/licenses', body, created)
      return (await stage.api('/licenses', body, created)).id
    }

    test('extends licenses once when the response of the start is lost and the person tries again', async () => {
      const id = await addSubscriptions('twice@example.com', 2)
      await stage.open('/licenses?email=twice%40example.com')
      await selectAll()
      await stage.act('Extend')
      await stage.dialog().getByText('2 of 2 licenses will change.').waitFor()
      const loseResponse = async (route: Route) => {
        await route.fetch()
        await route.abort()
      }
      await page.route('**/api/v1/license-jobs', loseResponse, { times: 1 })
      await dialogButton('Extend').click()
      await page.getByText('The service did not respond.', { exact: false }).first().waitFor()
      await dialogButton('Extend').click()
      await stage.dialog().waitFor({ state: 'detached' })
      await result('Extended 2 of 2 licenses.').waitFor()
      expect((await stage.read(`/licenses/${id}`, ended)).policy.expiresAt).toBe('2031-01-31T00:00:00.000Z')
      expect(await page.getByRole('region', { name: 'Extended 2 of 2 licenses.' }).count()).toBe(1)
    })

    test('extends licenses with the keyboard alone', async () => {
      const hands = keyboard(page)
      const id = await addSubscriptions('extended@example.com', 1)
      await stage.open('/licenses?email=extended%40example.com')
      await page.getByRole('checkbox', { name: 'Select all' }).focus()
      await page.keyboard.press('Space')
      await hands.act('Extend')
      await hands.write(stage.dialog().getByRole('textbox', { name: 'Days' }), '0')
      await stage
        .dialog()
        .getByText(/must be .*1/)
        .first()
        .waitFor()
      expect(await dialogButton('Extend').isDisabled()).toBe(true)
      await hands.write(stage.dialog().getByRole('textbox', { name: 'Days' }), '10')
      await stage.dialog().getByText('1 of 1 license will change.').waitFor()
      await hands.press(dialogButton('Extend'))
      await result('Extended 1 of 1 license.').waitFor()
      expect((await stage.read(`/licenses/${id}`, ended)).policy.expiresAt).toBe('2031-01-11T00:00:00.000Z')
      await hands.press(result('Extended 1 of 1 license.').getByRole('button', { name: 'Undo' }))
      await result('Restored 1 of 1 license.').waitFor()
      expect((await stage.read(`/licenses/${id}`, ended)).policy.expiresAt).toBe(policy.expiresAt)
    })
  })
}
