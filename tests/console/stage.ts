/** Starts the services and a browser with a signed-in member, which the tests of the console share. */

import { createTestDatabase, type TestDatabase } from '@keyward/testkit'
import { launchBrowser } from '@keyward/testkit/browser'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { z } from 'zod'

import {
  endChildren,
  OPERATOR_TOKEN,
  type Service,
  startManagement,
  startValidator,
  untilReady,
} from '../faults/support/children.ts'

const secrets = z.object({ id: z.string(), managementToken: z.string(), apiKey: z.string() })
export const created = z.object({ id: z.string() })
export const invited = z.object({ invitation: z.object({ path: z.string() }) })

const TIMEOUT_MS = 60_000

export const EVERYTHING = [
  'licenses.read',
  'licenses.write',
  'products.read',
  'products.write',
  'customers.read',
  'customers.write',
  'analytics.read',
  'audit.read',
  'credentials.write',
  'signing-keys.write',
  'webhooks.read',
  'webhooks.write',
  'orders.read',
  'orders.write',
]

export class Stage {
  /** Errors of scripts, and requests to other hosts. */
  readonly complaints: string[] = []
  readonly database: TestDatabase
  readonly #validator: Service
  readonly #management: Service
  readonly #vendor: z.infer<typeof secrets>
  readonly browser: Browser
  readonly context: BrowserContext
  readonly page: Page
  readonly origin: string

  constructor(parts: {
    database: TestDatabase
    validator: Service
    management: Service
    vendor: z.infer<typeof secrets>
    browser: Browser
    context: BrowserContext
    page: Page
  }) {
    this.database = parts.database
    this.#validator = parts.validator
    this.#management = parts.management
    this.#vendor = parts.vendor
    this.browser = parts.browser
    this.context = parts.context
    this.page = parts.page
    this.origin = `http://localhost:${parts.management.port}`
    this.page.on('pageerror', (error) => this.complaints.push(error.message))
    this.page.on('console', (message) => {
      // Excludes the messages of the browser about error responses, such as the 401 of a visitor who is not signed in.
      const isStatus = message.text().startsWith('Failed to load')
      if (message.type() === 'error' && !isStatus) this.complaints.push(message.text())
    })
    this.page.on('request', (request) => {
      const url = request.url()
      if (!url.startsWith(this.origin) && !/^(?:data|blob):/.test(url)) this.complaints.push(url)
    })
  }

  async api<Schema extends z.ZodType>(
    path: string,
    body: object,
    schema: Schema,
    method = 'POST',
  ): Promise<z.output<Schema>> {
    return send(this.#management.port, path, body, schema, this.#vendor.managementToken, method)
  }

  async read<Schema extends z.ZodType>(path: string, schema: Schema): Promise<z.output<Schema>> {
    return send(this.#management.port, path, undefined, schema, this.#vendor.managementToken, 'GET')
  }

  /** Deletes a resource. */
  async remove(path: string): Promise<void> {
    const response = await fetch(`http://127.0.0.1:${this.#management.port}/api/v1${path}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${this.#vendor.managementToken}` },
    })
    if (!response.ok) throw new Error(await response.text())
  }

  /** Sends a check as an app does. Returns the code of the verdict. */
  async check(license: string, fingerprint: string, apiKey = this.#vendor.apiKey): Promise<string> {
    const response = await fetch(`http://127.0.0.1:${this.#validator.port}/api/v2/license/validate`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ license, fingerprint }),
    })
    return z.object({ code: z.string() }).parse(await response.json()).code
  }

  /** Creates a license with one machine slot. */
  async addLicense(key: string, email = 'ada@example.com'): Promise<string> {
    const product = await this.api('/products', { name: `Product of ${key}` }, created)
    const customer = await this.api('/customers', { email }, created)
    const policy = { type: 'PERPETUAL', maxMachines: 1 }
    const body = { productId: product.id, customerId: customer.id, policy, key }
    return (await this.api('/licenses', body, created)).id
  }

  /** Sends a request from the browser of the signed-in member. */
  async actAsMember(method: string, path: string): Promise<void> {
    const status = await this.page.evaluate(
      `fetch('/api/v1${path}', { method: '${method}' }).then(({ status }) => status)`,
    )
    if (status !== 200) throw new Error(`${method} ${path}: ${String(status)}`)
  }

  button(name: string | RegExp) {
    return this.page.getByRole('button', { name, exact: typeof name === 'string' })
  }

  /** Chooses an action from the menu of the other actions. */
  async act(name: string): Promise<void> {
    await this.button('More actions').click()
    await this.page.getByRole('menuitem', { name, exact: true }).click()
  }

  link(name: string) {
    return this.page.getByRole('link', { name, exact: true })
  }

  field(name: string | RegExp) {
    return this.page.getByRole('textbox', { name })
  }

  /** Returns the cell that contains exactly this value, such as the value of an access rule in its sentence. */
  cell(name: string) {
    return this.page.getByRole('cell').filter({ has: this.page.getByText(name, { exact: true }) })
  }

  dialog() {
    return this.page.getByRole('dialog')
  }

  async done(message: string): Promise<void> {
    await this.page.getByText(message).first().waitFor()
  }

  /** Chooses an option of a field with a list. */
  async choose(label: string | RegExp, option: string | RegExp, within: Pick<Page, 'getByRole'> = this.page) {
    await within.getByRole('combobox', { name: label }).click()
    await this.page.getByRole('option', { name: option, exact: typeof option === 'string' }).click()
  }

  async open(path: string): Promise<void> {
    await this.page.goto(`${this.origin}/console${path}`)
    await this.page.getByRole('heading', { level: 1 }).waitFor()
  }

  /** Creates a member who signs in by accepting the invitation. */
  async signIn(email: string): Promise<void> {
    const member = await this.api('/members', { email, permissions: EVERYTHING }, invited)
    await this.page.goto(`${this.origin}${member.invitation.path}`)
    await this.button('Accept the invitation').click()
    await this.page.getByRole('heading', { name: 'Overview' }).waitFor()
  }

  async close(): Promise<void> {
    await this.browser.close()
    await endChildren()
    await this.database.drop()
  }
}

async function send<Schema extends z.ZodType>(
  port: number,
  path: string,
  body: object | undefined,
  schema: Schema,
  token: string,
  method = 'POST',
): Promise<z.output<Schema>> {
  const response = await fetch(`http://127.0.0.1:${port}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', prefer: 'wait=5' },
    ...(body && { body: JSON.stringify(body) }),
  })
  return schema.parse(await response.json())
}

/** Allows deliveries to receivers on this machine, and sets a mail server that is down. */
const LOCAL_RECEIVERS = {
  SMTP_URL: 'smtp://127.0.0.1:9',
  MAIL_FROM: 'mail@keyward.example',
  WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
  WEBHOOK_ALLOWED_PORTS: 'all',
  WEBHOOK_ALLOW_HTTP: 'true',
}

export async function openStage(): Promise<Stage> {
  const database = await createTestDatabase()
  const [management, validator] = await Promise.all([
    startManagement(database.managementUrl, { LOG_LEVEL: 'error', ...LOCAL_RECEIVERS }),
    startValidator(database.validatorUrl, { LOG_LEVEL: 'error' }),
  ])
  await untilReady(management, validator)
  const organization = { name: 'Acme', plan: 'STANDARD' }
  const vendor = await send(management.port, '/organizations', organization, secrets, OPERATOR_TOKEN)
  const browser = await launchBrowser()
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } })
  context.setDefaultTimeout(TIMEOUT_MS)
  const page = await context.newPage()
  const stage = new Stage({ database, management, validator, vendor, browser, context, page })
  await stage.signIn('support@example.com')
  return stage
}
