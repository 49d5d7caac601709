import { describe, expect, test } from 'vitest'

import { created, type Stage } from './stage.ts'

export function auditTests(open: () => Stage): void {
  describe('audit log', () => {
    test('shows the fields of a change with their values before and after, and the names of resources', async () => {
      const stage = open()
      const { page } = stage
      const id = await stage.addLicense('AUDIT-0000-0000-001')
      const change = { policy: { maxMachines: 4 }, metadata: { order: 'A-1001' } }
      await stage.api(`/licenses/${id}`, change, created, 'PATCH')
      await stage.api(`/licenses/${id}/suspend`, {}, created)
      await stage.open(`/licenses/${id}`)
      await stage.act('History')
      await page.getByText('Only changes of AUDIT-0000-0000-001.').waitFor()
      const rows = page.locator('tbody tr')
      await rows.filter({ hasText: 'License changed' }).waitFor()
      expect(await rows.count()).toBe(3)
      const changed = rows.filter({ hasText: 'License changed' })
      expect(await changed.locator('.differences > div').allInnerTexts()).toEqual([
        'Machines at the same time 1 → 4',
        'Metadata.order none → A-1001',
      ])
      expect(await changed.locator('del').allInnerTexts()).toEqual(['1', 'none'])
      expect(await rows.filter({ hasText: 'License suspended' }).locator('.differences').innerText()).toBe(
        'Status Active → Suspended',
      )
      const creation = rows.filter({ hasText: 'License created' })
      await creation.locator('summary').click()
      await creation.getByText('Product of AUDIT-0000-0000-001').waitFor()
      await changed.getByRole('link', { name: 'AUDIT-0000-0000-001' }).click()
      await page.getByRole('heading', { name: 'AUDIT-0000-0000-001', exact: true }).waitFor()
    })

    test('filters the audit log by resource type and by actor, and fits a narrow screen', async () => {
      const stage = open()
      const { page } = stage
      await stage.api('/products', { name: 'Audited product' }, created)
      await stage.open('/audit?resourceType=product&hours=24')
      await stage.cell('Audited product').first().waitFor()
      expect(await page.getByText(/^License /).count()).toBe(0)
      await stage.link('first management token').first().click()
      await page.getByText('Only changes by first management token.').waitFor()
      await page.setViewportSize({ width: 390, height: 844 })
      const table = page.getByRole('table', { name: 'Changes' })
      await table.getByText('Product created').first().waitFor()
      expect((await table.boundingBox())?.width).toBeLessThanOrEqual(390)
      await page.setViewportSize({ width: 1440, height: 900 })
    })
  })
}
