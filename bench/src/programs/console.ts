/**
 * Measures in Chromium how long the console takes to show lists, filtered lists and search results of an organization with many licenses
 * and access rules. A time begins with the action and ends when the browser shows the result. The time includes the work of the console,
 * the management service and Postgres.
 */

import { buildConsole } from '@keyward/console/build'
import { type Browser, chromium, type Page } from 'playwright-core'
import { z } from 'zod'

import { fillOrganization } from '../data/searched.ts'
import { numbersFrom, runMain } from '../harness/command-line.ts'
import { type Call, caller, OPERATOR_TOKEN, startManagement } from '../harness/management-api.ts'
import { withPostgres } from '../harness/temporary-postgres.ts'
import { writeResult } from '../report/results.ts'

const HELP = `node bench/src/programs/console.ts [options]

  --licenses N      licenses of the organization (default 1000000)
  --rules N         access rules of the organization (default 100000)
  --repeats N       repeats of each action (default 20)
  --help

Needs Chromium (CHROMIUM_PATH, default /usr/bin/chromium). Writes bench/results/console.json.`

/** The screens to show, by name. N stands for a random number and P for the id of a random product. */
const LISTS: Readonly<Record<string, string>> = {
  'licenses, first page': '/licenses',
  'licenses, active': '/licenses?status=active',
  'licenses, suspended': '/licenses?status=suspended',
  'licenses, revoked': '/licenses?status=revoked',
  'licenses, expired': '/licenses?status=expired',
  'licenses, of a product': '/licenses?productId=P',
  'licenses, suspended, of a product': '/licenses?productId=P&status=suspended',
  'licenses, expire within 30 days': '/licenses?within=30',
  'licenses, by expiry': '/licenses?sort=expiresAt&order=asc',
  'licenses, with a key': '/licenses?key=KEY-N',
  'licenses, of an e-mail address': '/licenses?email=customerN%40example.com',
  'customers, first page': '/customers',
  'customers, with an e-mail address': '/customers?email=customerN%40example.com',
  'rules, first page': '/rules',
  'rules, exclusions': '/rules?kind=EXCLUSION',
  'rules, restrictions': '/rules?kind=RESTRICTION',
  'rules, about machines': '/rules?type=HWID',
  'rules, monitored': '/rules?mode=MONITOR',
  'rules, of products': '/rules?scope=PRODUCT',
  'rules, by matches': '/rules?sort=matchCount&order=desc',
  'rules, by last match': '/rules?sort=lastMatchedAt&order=desc',
  'rules, that match an address': '/rules?matches=10.0.0.32',
  'rules, that match a machine': '/rules?matches=ruled-1',
}

const SEARCHES: Readonly<Record<string, string>> = {
  'search, a license key': 'KEY-N',
  'search, a customer': 'customerN@example.com',
  'search, a machine': 'machine-N',
  'search, a host name': 'Host-N',
}

/**
 * JavaScript that navigates to a path, and resolves with the milliseconds until the table has rows and no cell contains `…`, the
 * placeholder of a name that is being loaded.
 */
const SHOW = `(path) => new Promise((resolve, reject) => {
  setTimeout(() => reject(new Error('nothing was shown within 20 s')), 20_000)
  const startedMs = performance.now()
  history.pushState(null, '', '/console' + path)
  const isShown = () => {
    const cells = [...document.querySelectorAll('main tbody td')]
    return cells.length > 0 && cells.every(({ textContent }) => textContent !== '…')
  }
  const look = () => isShown() ? resolve(performance.now() - startedMs) : requestAnimationFrame(look)
  look()
})`

/**
 * JavaScript that enters a text into the search field, and resolves with the milliseconds until a search result is shown. A command, such
 * as "Block", is not a search result.
 */
const SEARCH = `(text) => new Promise((resolve, reject) => {
  setTimeout(() => reject(new Error('nothing was shown within 20 s')), 20_000)
  const field = document.querySelector('[role=combobox][aria-controls=found]')
  const startedMs = performance.now()
  Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(field, text)
  field.dispatchEvent(new Event('input', { bubbles: true }))
  const look = () => [...document.querySelectorAll('#found [role=option]')].some(
    (offer) => offer.textContent.toLowerCase().includes(text.toLowerCase()) && !/^(Block|Rules)/.test(offer.textContent),
  ) ? resolve(performance.now() - startedMs) : requestAnimationFrame(look)
  look()
})`

interface Times {
  p50: number
  p95: number
  max: number
}

function timesOf(all: readonly number[]): Times {
  const sorted = all.toSorted((a, b) => a - b)
  const at = (share: number) => Math.round(sorted[Math.ceil(share * sorted.length) - 1]!)
  return { p50: at(0.5), p95: at(0.95), max: at(1) }
}

const created = z.object({ id: z.string(), managementToken: z.string() })
const invited = z.object({ invitation: z.object({ path: z.string() }) })
const PERMISSIONS = ['licenses.read', 'licenses.write', 'customers.read', 'products.read', 'analytics.read']

class Measurement {
  readonly #browser: Browser
  readonly #origin: string
  readonly #call: Call
  readonly #sizes: Readonly<Record<'licenses' | 'repeats', number>>
  readonly #products: readonly string[]

  constructor(parts: {
    browser: Browser
    origin: string
    call: Call
    sizes: Readonly<Record<'licenses' | 'repeats', number>>
    products: readonly string[]
  }) {
    this.#browser = parts.browser
    this.#origin = parts.origin
    this.#call = parts.call
    this.#sizes = parts.sizes
    this.#products = parts.products
  }

  /** Signs a new member in, in a browser with an empty cache. */
  async signIn(): Promise<Page> {
    const body = { email: `person-${Math.random()}@example.com`, permissions: PERMISSIONS }
    const { invitation } = (await this.#call('POST', 'members', invited, body)).value
    const context = await this.#browser.newContext({ viewport: { width: 1440, height: 900 } })
    const page = await context.newPage()
    await page.goto(`${this.#origin}${invitation.path}`)
    await page.getByRole('button', { name: 'Accept the invitation' }).click()
    await page.getByRole('heading', { name: 'Your account' }).waitFor()
    return page
  }

  /** Measures how long a browser with an empty cache takes to show the sign-in page. */
  async firstLoads(): Promise<Times> {
    const all: number[] = []
    for (let i = 0; i < this.#sizes.repeats; i++) {
      const context = await this.#browser.newContext({ viewport: { width: 1440, height: 900 } })
      const page = await context.newPage()
      await page.goto(`${this.#origin}/console`, { waitUntil: 'commit' })
      await page.getByRole('heading', { level: 1 }).waitFor()
      all.push(z.number().parse(await page.evaluate('performance.now()')))
      await context.close()
    }
    return timesOf(all)
  }

  async lists(page: Page, path: string): Promise<Times> {
    const all: number[] = []
    for (let i = 0; i < this.#sizes.repeats; i++) {
      // The page `why` has no table. Loading it empties the cache of responses, and loads the scripts of the list before the measurement.
      await page.goto(`${this.#origin}/console/why`)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await page.waitForLoadState('networkidle')
      const ms = page.evaluate(`(${SHOW})(${JSON.stringify(this.#varied(path))})`)
      all.push(z.number().parse(await ms.catch((cause: unknown) => Promise.reject(new Error(path, { cause })))))
    }
    return timesOf(all)
  }

  async searches(page: Page, text: string): Promise<Times> {
    await page.goto(`${this.#origin}/console/why`)
    await page.getByRole('heading', { level: 1 }).waitFor()
    const all: number[] = []
    for (let i = 0; i < this.#sizes.repeats; i++) {
      await page.keyboard.press('Control+k')
      await page.getByRole('combobox', { name: /^Paste/ }).waitFor()
      all.push(z.number().parse(await page.evaluate(`(${SEARCH})(${JSON.stringify(this.#varied(text))})`)))
      await page.keyboard.press('Escape')
      await page.getByRole('combobox', { name: /^Paste/ }).waitFor({ state: 'detached' })
    }
    return timesOf(all)
  }

  #varied(template: string): string {
    const number = 1 + Math.floor(Math.random() * this.#sizes.licenses)
    const product = this.#products[number % this.#products.length]!
    return template
      .replace('customerN', `customer${number}`)
      .replace(/-N$/, `-${number}`)
      .replace(/=P(?=&|$)/, `=${product}`)
  }
}

await runMain('console', async () => {
  const sizes = numbersFrom(HELP, { licenses: 1_000_000, rules: 100_000, repeats: 20 })
  if (sizes === null) return
  await buildConsole()
  await withPostgres(
    async (url) => {
      const data = await measure(url, sizes)
      console.log(JSON.stringify(data, null, 2))
      console.log(writeResult('console', data))
    },
    { shared_buffers: '1GB', max_wal_size: '8GB', fsync: 'off' },
  )
})

async function measure(url: string, sizes: Record<'licenses' | 'rules' | 'repeats', number>): Promise<object> {
  const management = await startManagement(url)
  const executablePath = process.env['CHROMIUM_PATH'] ?? '/usr/bin/chromium'
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
  try {
    const operator = caller(management.port, OPERATOR_TOKEN)
    const { value } = await operator('POST', 'organizations', created, { name: 'Large', plan: 'STANDARD' })
    const products = await fillOrganization(url, value.id, sizes)
    const origin = `http://localhost:${management.port}`
    const call = caller(management.port, value.managementToken)
    const measurement = new Measurement({ browser, origin, call, sizes, products })
    const times: Record<string, Times> = { 'first load': await measurement.firstLoads() }
    const page = await measurement.signIn()
    for (const path of ['/licenses', '/rules', '/customers']) {
      await page.goto(`${origin}/console${path}`)
      await page.locator('main tbody tr').first().waitFor()
    }
    const note = (name: string, measured: Times) => {
      times[name] = measured
      console.error(`${name}: ${JSON.stringify(measured)}`)
    }
    for (const [name, path] of Object.entries(LISTS)) note(name, await measurement.lists(page, path))
    for (const [name, text] of Object.entries(SEARCHES)) note(name, await measurement.searches(page, text))
    return { ...sizes, milliseconds: times }
  } finally {
    await browser.close()
    await management.stop()
  }
}
