import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import { EVERYTHING, invited, type Stage } from './stage.ts'

const withSecret = z.object({ secret: z.string() })
const withId = invited.and(z.object({ id: z.string() }))

export function sessionTests(open: () => Stage): void {
  describe('an ended session', () => {
    test('is noticed on any screen, and signing in again keeps the screen and what was typed', async () => {
      const stage = open()
      const member = await stage.api('/members', { email: 'ended@example.com', permissions: EVERYTHING }, withId)
      const context = await stage.browser.newContext()
      const page = await context.newPage()
      await page.goto(`${stage.origin}${member.invitation.path}`)
      await page.getByRole('button', { name: 'Accept the invitation' }).click()
      await page.getByRole('heading', { level: 1 }).waitFor()
      const granted = { name: 'again', permissions: EVERYTHING }
      const { secret } = await stage.api(`/members/${member.id}/access-tokens`, granted, withSecret)
      await page.goto(`${stage.origin}/console/customers`)
      await page.getByRole('button', { name: 'New customer' }).first().click()
      const form = page.getByRole('dialog', { name: 'New customer' })
      await form.getByRole('textbox', { name: 'E-mail' }).fill('typed@example.com')
      await context.clearCookies()
      await form.getByRole('button', { name: 'New customer' }).click()
      const gate = page.getByRole('dialog', { name: 'Your session has ended' })
      await gate.getByRole('button', { name: 'Use a token' }).click()
      await gate.getByLabel('Personal access token or operator token').fill('kwp_wrong')
      await gate.getByRole('button', { name: 'Sign in', exact: true }).click()
      await gate.getByRole('alert').waitFor()
      await gate.getByLabel('Personal access token or operator token').fill(secret)
      await gate.getByRole('button', { name: 'Sign in', exact: true }).click()
      await gate.waitFor({ state: 'hidden' })
      expect(await form.getByRole('textbox', { name: 'E-mail' }).inputValue()).toBe('typed@example.com')
      await form.getByRole('button', { name: 'New customer' }).click()
      await page.getByRole('heading', { name: 'typed@example.com' }).waitFor()
      await context.close()
    })

    test('is noticed without any action after the member was removed', async () => {
      const stage = open()
      const member = await stage.api('/members', { email: 'gone@example.com', permissions: EVERYTHING }, withId)
      const context = await stage.browser.newContext()
      const page = await context.newPage()
      await page.goto(`${stage.origin}${member.invitation.path}`)
      await page.getByRole('button', { name: 'Accept the invitation' }).click()
      // The screen of the invitation also has a heading.
      await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
      await stage.remove(`/members/${member.id}`)
      const gate = page.getByRole('dialog', { name: 'Your session has ended' })
      await gate.waitFor()
      expect(await page.getByRole('heading', { level: 1 }).count()).toBe(1)
      await context.close()
    })
  })
}
