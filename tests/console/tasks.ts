/** Defines the fifteen tasks for which the console is made, as steps that can be performed with the mouse or the keyboard. */

import { expect } from 'vitest'
import { z } from 'zod'

import type { Hands } from './hands.ts'
import { created, type Stage } from './stage.ts'

export interface Task {
  readonly name: string
  /** Creates the resources that the task needs. The input is not counted. */
  readonly prepare?: (stage: Stage, run: string) => Promise<unknown>
  /** Performs the task, beginning at the overview, and checks its result. `run` makes names unique. */
  readonly perform: (stage: Stage, hands: Hands, run: string) => Promise<void>
}

const key = (task: number, run: string) => `TASK-${String(task).padStart(4, '0')}-${run}`
const openLicense = async (stage: Stage, hands: Hands, task: number, run: string) => {
  await hands.find(key(task, run), new RegExp(`^${key(task, run)}`))
  await stage.page.getByRole('heading', { name: key(task, run), exact: true }).waitFor()
}
const counted = z.object({ matchCount: z.int() })
const membership = z.object({ data: z.array(z.object({ email: z.string(), permissions: z.array(z.string()) })) })
const confirm = (stage: Stage, hands: Hands, name: string) =>
  hands.press(stage.dialog().getByRole('button', { name, exact: true }))

/** Creates a license whose only slot is taken by the machine `first`. */
const takenLicense = (task: number) => async (stage: Stage, run: string) => {
  await stage.addLicense(key(task, run), `task${task}-${run}@example.com`)
  expect(await stage.check(key(task, run), `first-${run}`)).toBe('VALID')
}

/** Opens the page "Check" for a license and decides a check of the machine `second`. */
const explain = async (stage: Stage, hands: Hands, task: number, run: string) => {
  await openLicense(stage, hands, task, run)
  await hands.press(stage.link('Check a machine'))
  await hands.write(stage.field('Machine id'), `second-${run}`)
  await hands.press(stage.button('Decide'))
  await stage.page.getByText('Every slot is taken by another machine.').waitFor()
}

export const TASKS: readonly Task[] = [
  {
    name: 'Create a product, a customer and a license',
    perform: async (stage, hands, run) => {
      await hands.go('Products')
      await hands.press(stage.button('New product').first())
      await hands.write(stage.dialog().getByRole('textbox', { name: 'Name' }).first(), `App ${run}`)
      await confirm(stage, hands, 'New product')
      await stage.done('Created the product.')
      await stage.dialog().waitFor({ state: 'hidden' })
      await hands.go('Licenses')
      await hands.press(stage.link('New license').first())
      await hands.choose(stage.page.getByRole('combobox', { name: 'Product' }), '', `App ${run}`)
      await hands.write(stage.page.getByRole('combobox', { name: /Customer/ }), `new-${run}@example.com`)
      await hands.press(stage.button('Create license'))
      await stage.done('Created the license.')
    },
  },
  {
    name: 'Find a customer by a pasted key, an e-mail address and a machine id',
    prepare: takenLicense(2),
    perform: async (stage, hands, run) => {
      await openLicense(stage, hands, 2, run)
      await hands.find(`task2-${run}@example.com`, new RegExp(`^task2-${run}@`))
      await stage.page.getByRole('heading', { name: `task2-${run}@example.com` }).waitFor()
      await hands.find(`first-${run}`, new RegExp(`^first-${run}`))
      await stage.page.getByRole('heading', { name: key(2, run), exact: true }).waitFor()
    },
  },
  {
    name: 'Find out why a machine is rejected',
    prepare: takenLicense(3),
    perform: (stage, hands, run) => explain(stage, hands, 3, run),
  },
  {
    name: 'Let one machine through',
    prepare: takenLicense(4),
    perform: async (stage, hands, run) => {
      await explain(stage, hands, 4, run)
      await hands.pick(stage.button('Let through'), 'For 7 days')
      await stage.page.getByText(/An exclusion lets it through/).waitFor()
      expect(await stage.check(key(4, run), `second-${run}`)).toBe('VALID')
    },
  },
  {
    name: 'Block a country and a range, with a warning about your own address',
    perform: async (stage, hands, run) => {
      const country = run === 'MOUS' ? 'Andorra (AD)' : 'Aruba (AW)'
      await hands.find('block country', 'Block a country')
      await hands.choose(stage.page.getByRole('combobox', { name: 'Country' }), country.slice(0, 5), country)
      await hands.press(stage.button('Create rule'))
      await stage.page.waitForURL('**/console/rules')
      await hands.find('127.0.0.0/8', 'Block 127.0.0.0/8')
      await stage.page.getByText(/contains your own address/).waitFor()
      await hands.write(stage.field('Value'), run === 'MOUS' ? '203.0.113.0/25' : '203.0.113.128/25')
      await hands.press(stage.button('Create rule'))
      await stage.cell(run === 'MOUS' ? '203.0.113.0/25' : '203.0.113.128/25').waitFor()
    },
  },
  {
    name: 'Import 2,500 addresses from a file with 3 invalid lines',
    perform: async (stage, hands, run) => {
      const { page } = stage
      const lines = Array.from({ length: 2_500 }, (_, i) => `10.${run === 'MOUS' ? 3 : 4}.${i >> 8}.${i & 255}`)
      for (const bad of [3, 1_700, 2_400]) lines[bad] = `bad ${bad}`
      await hands.go('Access rules')
      await hands.press(stage.link('Import'))
      const [chooser] = await Promise.all([
        page.waitForEvent('filechooser'),
        hands.press(stage.button('Choose a file')),
      ])
      await chooser.setFiles({ name: 'blocked.txt', mimeType: 'text/plain', buffer: Buffer.from(lines.join('\n')) })
      await page.getByText('2,497 rules to import').waitFor()
      await hands.press(stage.button('Import 2,497 rules'))
      await page.getByText('Created 2,497 rules. 0 existed already.').waitFor()
    },
  },
  {
    name: 'See which rule matches an address, and how often',
    prepare: async (stage, run) => {
      const id = await stage.addLicense(key(7, run))
      const match = { kind: 'BLACKLIST', mode: 'MONITOR', type: 'IP', value: '127.0.0.0/31' }
      const rule = { ...match, scope: 'LICENSE', scopeId: id }
      const { id: ruleId } = await stage.api('/access-rules', rule, created)
      for (const _ of [1, 2, 3]) expect(await stage.check(key(7, run), `task7-${run}`)).toBe('VALID')
      await expect.poll(() => stage.read(`/access-rules/${ruleId}`, counted)).toEqual({ matchCount: 3 })
    },
    perform: async (stage, hands, run) => {
      await hands.find('127.0.0.1', 'Rules that match 127.0.0.1')
      const row = stage.page.getByRole('row').filter({ hasText: key(7, run) })
      await row.getByText('127.0.0.0/31', { exact: true }).waitFor()
      expect(await row.getByRole('cell', { name: '3', exact: true }).count()).toBe(1)
    },
  },
  {
    name: 'Free a machine slot',
    prepare: takenLicense(8),
    perform: async (stage, hands, run) => {
      await openLicense(stage, hands, 8, run)
      await hands.press(stage.button('Free'))
      await stage.done('Freed the slot.')
      expect(await stage.check(key(8, run), 'another')).toBe('VALID')
    },
  },
  {
    name: 'Suspend, reinstate and renew a license, and replace its key',
    prepare: async (stage, run) => {
      const id = await stage.addLicense(key(9, run))
      const policy = { type: 'SUBSCRIPTION', expiresAt: '2031-01-01T00:00:00.000Z' }
      await stage.api(`/licenses/${id}`, { policy }, created, 'PATCH')
    },
    perform: async (stage, hands, run) => {
      const { page } = stage
      await openLicense(stage, hands, 9, run)
      await hands.act('Suspend')
      await confirm(stage, hands, 'Suspend')
      await page.getByText('Suspended', { exact: true }).waitFor()
      await hands.press(stage.button('Reinstate'))
      await page.getByText('Active', { exact: true }).waitFor()
      await hands.press(stage.button('Renew'))
      await hands.write(stage.dialog().getByLabel(/Expires/), '01012032')
      await confirm(stage, hands, 'Renew')
      await page
        .getByText(/1, 2032|1 Jan 2032/)
        .first()
        .waitFor()
      await stage.dialog().waitFor({ state: 'hidden' })
      await hands.act('Replace the key')
      await confirm(stage, hands, 'Replace the key')
      await stage.dialog().waitFor({ state: 'hidden' })
      expect(await stage.check(key(9, run), 'm')).toBe('NOT_FOUND')
    },
  },
  {
    name: 'Download an offline file',
    prepare: (stage, run) => stage.addLicense(key(10, run)),
    perform: async (stage, hands, run) => {
      await openLicense(stage, hands, 10, run)
      const download = stage.page.waitForEvent('download')
      await hands.press(stage.button('Offline file'))
      expect((await download).suggestedFilename()).toMatch(/\.lic$/)
    },
  },
  {
    name: 'Rotate a signing key, and see what to do next',
    perform: async (stage, hands) => {
      await hands.go('API keys')
      await hands.press(stage.button('Rotate'))
      await confirm(stage, hands, 'Rotate')
      await stage.done('Ship its public key in the next release of your app.')
    },
  },
  {
    name: 'Invite a colleague who can only read',
    perform: async (stage, hands, run) => {
      await hands.go('Team')
      await hands.press(stage.button('Invite a member').first())
      await hands.write(stage.dialog().getByRole('textbox', { name: 'E-mail' }), `reader-${run}@example.com`)
      await confirm(stage, hands, 'Invite a member')
      await stage.page.getByText(/\/console\/invitation#kwi_/).waitFor()
      const { data } = await stage.read('/members', membership)
      const { permissions = [] } = data.find(({ email }) => email === `reader-${run}@example.com`) ?? {}
      expect(permissions.length).toBeGreaterThan(0)
      expect(permissions.filter((name) => !name.endsWith('.read'))).toEqual([])
    },
  },
  {
    name: 'See who changed a license, and what the values were',
    prepare: async (stage, run) => {
      const id = await stage.addLicense(key(13, run))
      await stage.api(`/licenses/${id}`, { policy: { maxMachines: 4 } }, created, 'PATCH')
      await stage.actAsMember('POST', `/licenses/${id}/suspend`)
    },
    perform: async (stage, hands, run) => {
      await hands.go('Changes')
      const rows = stage.page.getByRole('row').filter({ hasText: key(13, run) })
      const changed = rows.filter({ hasText: 'License changed' })
      await changed.getByText('first management token').waitFor()
      expect(await changed.locator('.differences').innerText()).toBe('Machines at the same time 1 → 4')
      const suspended = rows.filter({ hasText: 'License suspended' })
      await suspended.getByText('support@example.com').waitFor()
      expect(await suspended.locator('del').innerText()).toBe('Active')
      expect(await suspended.locator('ins').innerText()).toBe('Suspended')
    },
  },
  {
    name: 'Merge two customers, and see first what moves',
    prepare: async (stage, run) => {
      await stage.addLicense(key(14, run), `gone-${run}@example.com`)
      await stage.addLicense(key(140, run), `kept-${run}@example.com`)
    },
    perform: async (stage, hands, run) => {
      const { page } = stage
      await hands.find(`gone-${run}@example.com`, new RegExp(`^gone-${run}@`))
      await hands.act('Merge into another')
      await hands.choose(page.getByRole('combobox', { name: 'The customer that remains' }), `kept-${run}`, /^kept-/)
      await page.getByText(/To the remaining customer: 1 license\./).waitFor()
      await hands.press(stage.button(`Merge into kept-${run}@example.com`))
      await stage.done('Merged the customers.')
    },
  },
  {
    name: "See last week's checks by outcome, and which licenses expire next month",
    perform: async (stage, hands) => {
      const { page } = stage
      await hands.select('7 days')
      await page.getByText('The same figures as a table').waitFor()
      await page.getByRole('region', { name: 'Expire within 30 days' }).getByText(/^EXPI/).waitFor()
    },
  },
]
