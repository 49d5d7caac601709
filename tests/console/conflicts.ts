/** Tests that two people who edit one resource see each other's changes instead of overwriting them (docs/api.md#m18). */

import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import { violationsOf } from './accessibility.ts'
import type { Stage } from './stage.ts'

const policy = z.object({
  policy: z.object({ maxMachines: z.number().nullable(), maxReleases: z.number().nullable() }),
})

const MACHINES = 'Machines at the same time'
const RELEASES = 'Releases by apps in 30 days'

/** Opens the window for the terms of a license, and fills in a field. */
async function edit(page: Page, url: string, field: string, value: string): Promise<void> {
  await page.goto(url)
  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('menuitem', { name: 'Change the terms' }).click()
  await page.getByRole('dialog').getByLabel(field).fill(value)
}

export function conflictTests(open: () => Stage): void {
  describe('two tabs', () => {
    test('change different fields of a license without losing either change', async () => {
      const stage = open()
      const id = await stage.addLicense('TABS-0000-0000-0001')
      const url = `${stage.origin}/console/licenses/${id}`
      const other = await stage.context.newPage()
      await edit(stage.page, url, MACHINES, '9')
      await edit(other, url, RELEASES, '4')
      await stage.dialog().getByRole('button', { name: 'Save' }).click()
      await stage.done('Saved the license.')

      await other.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
      const conflict = other.getByRole('alert')
      await conflict.getByText('Somebody else has saved changes meanwhile').waitFor()
      expect(await conflict.getByRole('row').allInnerTexts()).toEqual([
        'Field\tSaved meanwhile\tYours',
        'Releases by apps in 30 days\tnone\t4',
      ])
      expect(await conflict.locator('.differences').innerText()).toMatch(/Machines.*1.*9/)
      expect(await violationsOf(other)).toEqual([])
      expect(await stage.read(`/licenses/${id}`, policy)).toEqual({ policy: { maxMachines: 9, maxReleases: null } })
      await other.getByRole('button', { name: 'Save mine' }).click()
      await other.getByRole('dialog').waitFor({ state: 'hidden' })
      expect(await stage.read(`/licenses/${id}`, policy)).toEqual({ policy: { maxMachines: 9, maxReleases: 4 } })
      await other.close()
    })

    test('keep the saved value of a field that both have changed', async () => {
      const stage = open()
      const id = await stage.addLicense('TABS-0000-0000-0002')
      const url = `${stage.origin}/console/licenses/${id}`
      const other = await stage.context.newPage()
      await edit(stage.page, url, MACHINES, '9')
      await edit(other, url, MACHINES, '7')
      await stage.dialog().getByRole('button', { name: 'Save' }).click()
      await stage.done('Saved the license.')
      await other.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
      await other.getByRole('row', { name: /9\s+7/ }).waitFor()
      await other.getByRole('button', { name: 'Keep theirs' }).click()
      await other.getByText('0 of 9').first().waitFor()
      expect(await stage.read(`/licenses/${id}`, policy)).toMatchObject({ policy: { maxMachines: 9 } })
      await other.close()
    })
  })
}
