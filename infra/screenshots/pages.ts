import type { Page } from 'playwright-core'

/** The ids of the objects in the demo data that the screens show. */
export interface Shown {
  /** A license without a free slot, and a machine whose checks of this license are rejected. */
  readonly overused: string
  readonly rejectedMachine: string
  readonly customer: string
  readonly product: string
  /** A webhook endpoint, and a delivery that failed. */
  readonly endpoint: string
  readonly delivery: string
  /** The name of a set of rules. */
  readonly set: string
}

/** The person to whom a screen is shown. A visitor has not signed in. */
export type Viewer = 'member' | 'operator' | 'visitor'

export interface Screen {
  readonly name: string
  /** The path below `/console`. */
  readonly path: (shown: Shown) => string
  /** Fills fields and opens dialogs of the screen before the picture is taken. */
  readonly prepare?: (page: Page, shown: Shown) => Promise<void>
  /** Default: a member. */
  readonly viewer?: Viewer
  /** True if the documentation contains a picture of the screen. */
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
  { name: 'merge', path: ({ customer }) => `/customers/${customer}/merge` },
  plain('products'),
  { name: 'product', path: ({ product }) => `/products/${product}` },
  {
    name: 'edit-license',
    path: ({ overused }) => `/licenses/${overused}`,
    prepare: async (page) => {
      await page.getByRole('button', { name: 'More actions' }).click()
      await page.getByRole('menuitem', { name: 'Change the terms' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Save' }).waitFor()
    },
  },
  {
    name: 'selected-licenses',
    path: () => '/licenses?status=suspended',
    prepare: async (page) => {
      await page.getByRole('checkbox', { name: 'Select all' }).click()
      await page.getByRole('button', { name: 'Reinstate' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).waitFor()
    },
  },
  plain('sets', '/rules/sets'),
  { name: 'set', path: ({ set }) => `/rules/set?${new URLSearchParams({ name: set }).toString()}` },
  {
    name: 'replace-set',
    path: ({ set }) => `/rules/set/replace?${new URLSearchParams({ name: set }).toString()}`,
    prepare: async (page) => {
      await page.getByRole('textbox', { name: 'Values' }).fill('192.42.116.16/28\n198.51.100.0/24\n999.1.1.1')
      await page.getByText('2 rules removed').waitFor()
    },
  },
  {
    name: 'import-rules',
    path: () => '/rules/import',
    prepare: async (page) => {
      await page.getByRole('textbox', { name: 'Values' }).fill('203.0.113.7\n198.51.100.0/24\n10.0.0.0/77')
      await page.getByText('2 rules to import').waitFor()
    },
  },
  plain('webhooks'),
  { name: 'endpoint', path: ({ endpoint }) => `/webhooks/${endpoint}` },
  {
    name: 'delivery',
    path: ({ endpoint, delivery }) => `/webhooks/${endpoint}?delivery=${delivery}`,
    prepare: (page) => page.getByRole('dialog').getByText('Attempt 1').waitFor(),
  },
  {
    name: 'new-endpoint',
    path: () => '/webhooks',
    prepare: async (page) => {
      await page.getByRole('button', { name: 'New endpoint' }).click()
      await page.getByText('Only some events').click()
    },
  },
  plain('events', '/webhooks/events'),
  plain('integrate'),
  plain('alerts'),
  {
    name: 'check-panel',
    path: () => '/activity?code=TOO_MANY_MACHINES',
    prepare: async (page) => {
      await page.getByRole('button', { name: /Why\?/ }).first().click()
      await page.getByRole('heading', { name: 'Every slot is taken by another machine.' }).waitFor()
    },
    isInDocs: true,
  },
  plain('activity'),
  plain('audit'),
  plain('team'),
  plain('credentials'),
  {
    name: 'invite',
    path: () => '/team?new=1',
    prepare: (page) => page.getByRole('dialog').getByRole('textbox', { name: 'E-mail' }).waitFor(),
  },
  plain('account'),
  { ...plain('sign-in', '/'), viewer: 'visitor' },
  { ...plain('invitation', '/invitation#kwi_example'), viewer: 'visitor' },
  { ...plain('organizations'), viewer: 'operator' },
  { ...plain('validators'), viewer: 'operator' },
]
