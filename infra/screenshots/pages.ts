/** The screens of the console to take pictures of. */

import type { Page } from 'playwright-core'

/** Ids of objects in the demo data that some screens show. */
export interface Shown {
  /** A license whose machines take all slots, and a machine that it rejects. */
  readonly overused: string
  readonly rejectedMachine: string
  readonly customer: string
}

export interface Screen {
  readonly name: string
  /** The path below `/console`. */
  readonly path: (shown: Shown) => string
  /** Brings the screen into the state to show. */
  readonly prepare?: (page: Page, shown: Shown) => Promise<void>
  /** Whether the documentation contains the screen. */
  readonly isInDocs?: boolean
}

const plain = (name: string, path = `/${name}`): Screen => ({ name, path: () => path })

export const SCREENS: readonly Screen[] = [
  {
    name: 'overview',
    path: () => '',
    prepare: (page) => page.getByText('30 days', { exact: true }).click(),
    isInDocs: true,
  },
  {
    name: 'search',
    path: () => '/licenses',
    prepare: async (page) => {
      await page.keyboard.press('Control+k')
      await page.getByRole('combobox', { name: /^Paste/ }).fill('studio')
      await page.getByRole('option', { name: /Studio Nordlicht/ }).waitFor()
    },
    isInDocs: true,
  },
  { ...plain('licenses'), isInDocs: true },
  { name: 'license', path: ({ overused }) => `/licenses/${overused}`, isInDocs: true },
  {
    name: 'why',
    path: ({ overused }) => `/why?license=${overused}`,
    prepare: async (page, { rejectedMachine }) => {
      await page.getByRole('textbox', { name: 'Machine id' }).fill(rejectedMachine)
      await page.getByRole('button', { name: 'Decide' }).click()
      await page.getByText('Every slot is taken by another machine.').waitFor()
    },
    isInDocs: true,
  },
  { ...plain('rules'), isInDocs: true },
  {
    name: 'new-rule',
    path: () => '/rules/new',
    prepare: async (page) => {
      await page.getByRole('textbox', { name: 'Value' }).fill('127.1.2.3/8')
      await page.getByText(/contains your own address/).waitFor()
    },
    isInDocs: true,
  },
  plain('new-license', '/licenses/new'),
  plain('import-licenses', '/licenses/import'),
  plain('customers'),
  { name: 'customer', path: ({ customer }) => `/customers/${customer}` },
  plain('products'),
  plain('sets', '/rules/sets'),
  plain('import-rules', '/rules/import'),
  plain('integrate'),
  plain('alerts'),
  plain('activity'),
  plain('audit'),
  plain('team'),
  plain('credentials'),
  plain('account'),
]
