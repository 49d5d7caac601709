import { expect, test } from 'vitest'

import { violationsOf } from './accessibility.ts'
import { created, type Stage } from './stage.ts'

export function templateTests(open: () => Stage): void {
  test('creates a template, issues licenses with it, and applies a change to those without a value of their own', async () => {
    const stage = open()
    const { page } = stage
    await stage.open('/products')
    await stage.button('New product').first().click()
    await stage.dialog().getByRole('textbox', { name: 'Name' }).first().fill('Templated')
    await stage.dialog().getByRole('button', { name: 'New product' }).click()
    await stage.done('Created the product.')
    await page.getByRole('cell', { name: 'Templated', exact: true }).click()
    await stage.button('New template').click()
    await stage.dialog().getByRole('textbox', { name: 'Name' }).first().fill('Studio, yearly')
    await stage.dialog().getByText('Subscription', { exact: true }).click()
    await stage.dialog().getByRole('textbox', { name: 'Days from first use' }).fill('365')
    await stage.dialog().getByRole('textbox', { name: 'Machines at the same time' }).fill('3')
    await stage.dialog().getByRole('textbox', { name: 'Grace period in days' }).fill('7')
    await stage.dialog().getByRole('button', { name: 'New template' }).click()
    await stage.done('Created the template.')

    const issue = async (email: string, machines?: string) => {
      await stage.open('/licenses/new')
      await stage.choose('Product', 'Templated')
      await stage.choose('Template', 'Studio, yearly')
      await page.getByRole('combobox', { name: /Customer/ }).fill(email)
      if (machines !== undefined) await stage.field('Machines at the same time').fill(machines)
      await stage.button('Create license').click()
      await stage.done('Created the license.')
      await stage.link('Studio, yearly').waitFor()
    }
    await issue('plain@example.com')
    expect(await page.getByText('differs from the template').count()).toBe(0)
    const plain = page.url()
    await issue('own@example.com', '9')
    expect(await page.getByText('differs from the template').count()).toBe(1)

    await stage.link('Studio, yearly').click()
    await stage.button('Change').click()
    await stage.dialog().getByRole('textbox', { name: 'Machines at the same time' }).fill('5')
    await stage.dialog().getByRole('button', { name: 'Save' }).click()
    await stage.done('Saved the template.')
    await page.getByText('do not have its latest values yet').waitFor()
    expect(await violationsOf(page)).toEqual([])
    await stage.button('Apply to licenses').click()
    await stage.dialog().getByText('1 of 2 licenses will change.').waitFor()
    await stage.dialog().getByText('1 license keeps a value of its own:').waitFor()
    expect(await violationsOf(page)).toEqual([])
    await stage.dialog().getByRole('button', { name: 'Apply to licenses' }).click()
    await page.getByText('The latest application changed 1 license.').waitFor()
    await stage.button('Change').click()
    await stage.dialog().getByRole('textbox', { name: 'Prices in shops' }).fill('price_1, price_2')
    await stage.dialog().getByRole('button', { name: 'Save' }).click()
    await page.getByText('price_1, price_2').waitFor()
    await page.goto(plain)
    await page.getByText('0 of 5').first().waitFor()

    const customer = { email: 'buyer@example.com' }
    await stage.api('/orders/shop/4711/1', { priceId: 'price_2', quantity: 2, customer, state: 'paid' }, created, 'PUT')
    await stage.open('/orders')
    await page.getByText('4711 / 1').waitFor()
    await stage.link('Studio, yearly').waitFor()
    expect(await page.locator('td').nth(4).innerText()).toMatch(/^\S{19}\s+\S{19}$/)
    expect(await violationsOf(page)).toEqual([])
  })
}
