/** Attacks the console in a real browser: markup in stored text, other origins, frames, stolen cookies and ended memberships. */

import { createServer, type Server } from 'node:http'

import { hasBrowser, WITHOUT_BROWSER } from '@keyward/testkit/browser'
import { type BrowserContext, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import { created, invited, openStage, type Stage } from './stage.ts'

const MARKUP = '<img src=x onerror=ran()><script>ran()</script>'
const COOKIE = 'keyward_session'
const member = invited.extend({ id: z.string() })

/**
 * Serves a page of an attacker. Its port differs from that of the console, so the page has another origin on every host name.
 */
async function serve(html: string): Promise<{ server: Server; port: number }> {
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html').end(html)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return { server, port: typeof address === 'object' && address ? address.port : 0 }
}

describe.skipIf(!hasBrowser)(`attacks (${WITHOUT_BROWSER})`, { timeout: 120_000 }, () => {
  let stage: Stage

  beforeAll(async () => {
    stage = await openStage()
  })
  afterAll(() => stage.close())

  async function secretOf(context: BrowserContext): Promise<string> {
    const cookies = await context.cookies(`${stage.origin}/api/v1`)
    return cookies.find(({ name }) => name === COOKIE)?.value ?? ''
  }

  /** Returns the status of a request that a program sends with a copied cookie. */
  async function statusWith(secret: string, path = '/me'): Promise<number> {
    const response = await fetch(`${stage.origin}/api/v1${path}`, { headers: { cookie: `${COOKIE}=${secret}` } })
    return response.status
  }

  /** Creates a member. `enter` accepts the invitation in a new browser context. */
  async function visit(email: string, permissions = ['licenses.read', 'customers.read', 'customers.write']) {
    const { id, invitation } = await stage.api('/members', { email, permissions }, member)
    const context = await stage.browser.newContext()
    const page = await context.newPage()
    const enter = async () => {
      await page.goto(`${stage.origin}${invitation.path}`)
      await page.getByRole('button', { name: 'Accept the invitation' }).click()
      await page.getByRole('heading', { name: 'Your account' }).waitFor()
    }
    return { id, context, page, enter }
  }
  const signInForm = (page: Page) => page.getByRole('heading', { name: 'Sign in to Keyward' }).waitFor()

  test('stored markup appears as text on every screen', async () => {
    const product = await stage.api('/products', { name: MARKUP }, created)
    const customer = await stage.api(
      '/customers',
      { email: 'a@example.com', name: MARKUP, externalId: MARKUP },
      created,
    )
    const ids = { productId: product.id, customerId: customer.id }
    const license = await stage.api('/licenses', { ...ids, policy: { type: 'PERPETUAL' }, key: MARKUP }, created)
    expect(await stage.check(MARKUP, MARKUP)).toBe('VALID')
    expect(await stage.check(MARKUP, 'fp\u001b[2K\u202egnp')).toBe('VALID')
    const rule = {
      kind: 'BLACKLIST',
      mode: 'MONITOR',
      type: 'HWID',
      value: MARKUP,
      scope: 'ORGANIZATION',
      note: MARKUP,
    }
    await stage.api('/access-rules', rule, created)
    await stage.api('/api-keys', { name: MARKUP }, created)
    const { page } = stage
    await page.addInitScript('window.attacks = 0; window.ran = () => { window.attacks += 1 }')
    const withMarkup = [
      '/licenses',
      `/licenses/${license.id}`,
      '/customers',
      `/customers/${customer.id}`,
      '/products',
      `/products/${product.id}`,
      '/rules',
      '/credentials',
    ]
    for (const path of withMarkup) {
      await stage.open(path)
      await page.getByText(MARKUP).first().waitFor()
      expect(await page.locator('main img').count()).toBe(0)
      expect(await page.locator('main').innerText()).not.toMatch(/\u202e/)
      expect(await page.evaluate('window.attacks')).toBe(0)
    }
    const others = ['', '/activity', '/audit', '/why']
    for (const path of [...others, `/customers?q=${encodeURIComponent(MARKUP)}`]) {
      await stage.open(path)
      await page.locator('.mantine-Loader-root, [aria-busy=true]').first().waitFor({ state: 'detached' })
      expect(await page.locator('main img').count()).toBe(0)
      expect(await page.locator('main').innerText()).not.toMatch(/\u202e/)
      expect(await page.evaluate('window.attacks')).toBe(0)
    }
  })

  test('the content security policy stops scripts and requests that an attacker inserts', async () => {
    const { server, port } = await serve('')
    await stage.open('/account')
    const stopped = await stage.page.evaluate<string[]>(`new Promise((resolve) => {
      const stopped = []
      window.inserted = false
      document.addEventListener('securitypolicyviolation', ({ effectiveDirective }) => {
        stopped.push(window.inserted ? 'a script has run' : effectiveDirective)
        if (stopped.length === 4) resolve(stopped.toSorted())
      })
      const inline = document.createElement('script')
      inline.textContent = 'window.inserted = true'
      const foreign = document.createElement('script')
      foreign.src = 'http://127.0.0.1:${port}/'
      document.body.append(inline, foreign)
      const link = document.createElement('a')
      link.setAttribute('onclick', 'window.inserted = true')
      link.click()
      fetch('http://127.0.0.1:${port}/').catch(() => undefined)
    })`)
    expect(stopped).toEqual(['connect-src', 'script-src-attr', 'script-src-elem', 'script-src-elem'])
    server.close()
  })

  test('a cookie that was set before the sign-in is invalid afterwards', async () => {
    const { context, page, enter } = await visit('fixation@example.com')
    const planted = `kws_${'A'.repeat(36)}`
    await context.addCookies([{ name: COOKIE, value: planted, domain: 'localhost', path: '/api/v1' }])
    await enter()
    const first = await secretOf(context)
    expect(first).not.toBe(planted)
    expect([await statusWith(planted), await statusWith(first)]).toEqual([401, 200])
    const other = await stage.api('/members', { email: 'second@example.com', permissions: [] }, member)
    await page.goto(`${stage.origin}/console/account`)
    const body = JSON.stringify({ invitation: other.invitation.path.split('#')[1] })
    await page.evaluate(
      `fetch('/api/v1/sessions', { method: 'POST', body: ${JSON.stringify(body)}, headers: { 'content-type': 'application/json' } })`,
    )
    expect(await secretOf(context)).not.toBe(first)
    await context.close()
  })

  test('scripts cannot read the cookie, and browsers send it only to the API', async () => {
    await stage.open('/account')
    expect(await stage.page.evaluate('document.cookie')).toBe('')
    const [cookie] = await stage.context.cookies(`${stage.origin}/api/v1`)
    expect(cookie).toMatchObject({
      name: COOKIE,
      httpOnly: true,
      sameSite: 'Strict',
      path: '/api/v1',
      domain: 'localhost',
    })
    expect(await stage.context.cookies(`${stage.origin}/console`)).toEqual([])
  })

  test.each(['127.0.0.1', 'localhost'])(
    'a page at another port of %s can neither change nor read data',
    async (host) => {
      const { context, page, enter } = await visit(`csrf-${host}@example.com`)
      await enter()
      const target = `${stage.origin}/api/v1/customers`
      const { server, port } = await serve(`
      <form action="${target}" method="post" enctype="text/plain" target="result"><input name='{"email":"forged@example.com","a":"' value='"}'></form>
      <iframe name="result"></iframe>`)
      await page.goto(`http://${host}:${port}/`)
      const responses = page.waitForResponse((response) => response.url() === target)
      await page.evaluate('document.forms[0].submit()')
      expect([401, 403]).toContain((await responses).status())
      const outcomes = await page.evaluate(`(async () => {
      const body = JSON.stringify({ email: 'forged@example.com' })
      const send = (options) => fetch('${target}', { credentials: 'include', ...options }).then(({ type }) => type, () => 'failed')
      return [
        await send({}),
        await send({ method: 'POST', body, headers: { 'content-type': 'application/json' } }),
        await send({ method: 'POST', body, mode: 'no-cors' }),
      ]
    })()`)
      expect(outcomes).toEqual(['failed', 'failed', 'failed'])
      const listed = await fetch(target, { headers: { cookie: `${COOKIE}=${await secretOf(context)}` } })
      expect(listed.status).toBe(200)
      expect(await listed.text()).not.toContain('forged@example.com')
      server.close()
      await context.close()
    },
  )

  test('no page can show the console in a frame', async () => {
    const { server, port } = await serve(`<iframe src="${stage.origin}/console"></iframe>`)
    const page = await stage.context.newPage()
    await page.goto(`http://localhost:${port}/`)
    await page.waitForFunction('frames.length === 1')
    const frame = page.frames()[1]
    expect(frame?.url()).toBe('chrome-error://chromewebdata/')
    expect(await frame?.getByRole('heading').count()).toBe(0)
    server.close()
    await page.close()
  })

  test('a withdrawn permission and an ended membership take effect at once', async () => {
    const { id, context, page, enter } = await visit('leaving@example.com')
    await enter()
    await page.goto(`${stage.origin}/console/customers`)
    await page.getByRole('heading', { name: 'Customers' }).waitFor()
    const secret = await secretOf(context)
    await stage.api(`/members/${id}`, { permissions: ['licenses.read'] }, created, 'PATCH')
    expect([await statusWith(secret, '/customers'), await statusWith(secret, '/licenses')]).toEqual([403, 200])
    await page.reload()
    await page.getByRole('link', { name: 'Licenses' }).waitFor()
    expect(await page.getByRole('link', { name: 'Customers' }).count()).toBe(0)
    await stage.remove(`/members/${id}`)
    expect(await statusWith(secret)).toBe(401)
    await page.reload()
    await signInForm(page)
    await context.close()
  })

  test('after sign-out a stolen cookie is invalid, and Back shows only the sign-in', async () => {
    await stage.api('/customers', { email: 'private@example.com' }, created)
    const { context, page, enter } = await visit('out@example.com')
    await enter()
    await page.getByRole('link', { name: 'Customers' }).click()
    await page.getByText('private@example.com').waitFor()
    await page.goto(`${stage.origin}/console/licenses`)
    const secret = await secretOf(context)
    await page.getByRole('button', { name: 'out@example.com' }).click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    await signInForm(page)
    expect(await secretOf(context)).toBe('')
    expect(await statusWith(secret)).toBe(401)
    for (let step = 0; step < 3; step++) {
      await page.goBack()
      await signInForm(page)
      expect(await page.getByText('private@example.com').count()).toBe(0)
    }
    await context.close()
  })

  test('no path of the console leads to another site, before and after the sign-in', async () => {
    const { context, page, enter } = await visit('redirect@example.com')
    const paths = ['//evil.example', '/sign-in?return=//evil.example&code=a&state=b', '/%2F%2Fevil.example']
    for (const path of paths) {
      await page.goto(`${stage.origin}/console${path}`)
      await signInForm(page)
      expect(new URL(page.url()).origin).toBe(stage.origin)
    }
    await enter()
    for (const path of [...paths, '/https://evil.example', '/\\evil.example']) {
      await page.goto(`${stage.origin}/console${path}`)
      await page.getByRole('heading', { level: 1 }).waitFor()
      expect(new URL(page.url()).origin).toBe(stage.origin)
    }
    await context.close()
  })

  test('the service redirects only to its own paths', async () => {
    for (const path of ['/', '//evil.example', '//evil.example/..', '/\\evil.example', '/console//evil.example/']) {
      const response = await fetch(stage.origin + path, { redirect: 'manual' })
      expect([null, 'console']).toContain(response.headers.get('location'))
    }
  })
})
