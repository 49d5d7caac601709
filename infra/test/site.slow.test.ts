/** Builds the documentation site as `npm run site` does, and follows its links. */

import { execFileSync } from 'node:child_process'
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { extname, join, posix } from 'node:path'

import { hasBrowser, launchBrowser, WITHOUT_BROWSER } from '@keyward/testkit/browser'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { listenOn } from '../shared/ports.ts'
import { listGroups } from '../site/pages.ts'

const BASE = '/keyward/'
let folder: string
let files: Map<string, string>

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'keyward-site-'))
  const program = join(import.meta.dirname, '../site/main.ts')
  execFileSync(process.execPath, [program, '--base', BASE.slice(0, -1), '--out', folder], { stdio: 'pipe' })
  const paths = globSync('**/*.{html,css}', { cwd: folder })
  files = new Map(paths.map((path) => [path, readFileSync(join(folder, path), 'utf8')]))
}, 240_000)

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Returns the values of an attribute in a page. */
const valuesOf = (html: string, attribute: string): string[] =>
  [...html.matchAll(new RegExp(`\\s${attribute}="([^"]*)"`, 'g'))].map(([, value = '']) => value)

const pages = (): [string, string][] => [...files].filter(([path]) => path.endsWith('.html'))

test('every document of a group has a page', () => {
  const documents = listGroups().flatMap(({ pages: listed }) => listed)
  expect(documents.length).toBeGreaterThan(60)
  expect(documents.filter(({ path }) => !files.has(path.replace(/\.md$/, '.html')))).toEqual([])
})

test('every internal link of a page leads to a file of the site, and to an anchor in it', () => {
  const anchors = new Map(pages().map(([path, html]) => [path, new Set(valuesOf(html, 'id'))]))
  const broken = pages().flatMap(([path, html]) =>
    [...valuesOf(html, 'href'), ...valuesOf(html, 'src'), ...valuesOf(html, 'srcset')].flatMap((link) => {
      if (/^(?:[a-z]+:|\/\/)/.test(link)) return []
      const [target = '', anchor = ''] = link.replaceAll('&amp;', '&').split('#')
      if (target.startsWith('/') && !target.startsWith(BASE)) return [`${path}: ${link} is outside of ${BASE}`]
      const found = target === '' ? path : posix.join(posix.dirname(`${BASE}${path}`), '.', target)
      const file = target === '' ? path : (target.startsWith('/') ? target : found).slice(BASE.length) || 'index.html'
      const name = decodeURI(file.endsWith('/') ? `${file}index.html` : file)
      const exists = existsSync(join(folder, name))
      const hasAnchor = anchor === '' || anchors.get(name)?.has(decodeURIComponent(anchor)) !== false
      return exists && hasAnchor ? [] : [`${path}: ${link}`]
    }),
  )
  expect(pages().length).toBeGreaterThan(60)
  expect([...new Set(broken)]).toEqual([])
})

test('no page or style loads a file of another host', () => {
  const loading = [...files].flatMap(([path, text]) => {
    const loaded = text.match(
      /(?:\ssrc|\ssrcset)="(?:https?:)?\/\/[^"]*|<link[^>]+href="(?:https?:)?\/\/[^"]*|url\(["']?(?:https?:)?\/\/[^)]*/g,
    )
    return (loaded ?? []).map((one) => `${path}: ${one}`)
  })
  expect(loading).toEqual([])
})

test('llms.txt names the source of every page', () => {
  const text = readFileSync(join(folder, 'llms.txt'), 'utf8')
  expect(text).toMatch(/^# Keyward\n\n> Keyward issues and checks software licenses\./)
  const links = [...text.matchAll(/\]\(([^)]+)\)/g)].map(([, link = '']) => link.slice(BASE.length))
  const paths = listGroups().flatMap(({ pages: listed }) => listed.map(({ path }) => path))
  expect(links.toSorted()).toEqual([...paths, 'openapi.json'].toSorted())
  expect(links.filter((link) => !existsSync(join(folder, link)))).toEqual([])
})

test('every link of a source that llms.txt lists leads to a source of the site, or to another host', () => {
  const broken = listGroups().flatMap(({ pages: listed }) =>
    listed.flatMap(({ path }) => {
      const text = readFileSync(join(folder, path), 'utf8').replaceAll(/^```[^]*?^```$|`[^`\n]+`/gm, 'code')
      const links = [...text.matchAll(/\]\(([^()#\s]+)/g)].map(([, link = '']) => link)
      return links
        .filter(
          (link) =>
            !/^[a-z]+:/.test(link) && !(link.startsWith(BASE) && existsSync(join(folder, link.slice(BASE.length)))),
        )
        .map((link) => `${path}: ${link}`)
    }),
  )
  expect(broken).toEqual([])
  expect(readFileSync(join(folder, 'index.md'), 'utf8')).toContain(`](${BASE}client/index.md)`)
})

test('the index of the search contains every page', () => {
  const [path = ''] = globSync('assets/chunks/@localSearchIndexroot*.js', { cwd: folder })
  const index = readFileSync(join(folder, path), 'utf8')
  const listed = listGroups().flatMap((group) =>
    group.pages.map((page) => page.path.replace(/(?:(^|\/)index)?\.md$/, '$1')),
  )
  // Each section of a page has an id such as /client/results.html#anchor.
  expect(listed.filter((page) => !new RegExp(`"${BASE}${page}(?:\\.html)?#`).test(index))).toEqual([])
})

const TYPES: Readonly<Record<string, string>> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' }

test.skipIf(!hasBrowser)(
  `the search finds a page, and the browser sends requests only to the site${hasBrowser ? '' : `, ${WITHOUT_BROWSER}`}`,
  async () => {
    const server = createServer((request, response) => {
      const path = join(folder, new URL(request.url ?? '/', 'http://site').pathname.slice(BASE.length) || 'index.html')
      response.setHeader('content-type', TYPES[extname(path)] ?? 'application/octet-stream')
      if (existsSync(path)) response.end(readFileSync(path))
      else response.writeHead(404).end()
    })
    const origin = `http://127.0.0.1:${await listenOn(server, 0)}`
    const browser = await launchBrowser()
    try {
      const page = await browser.newPage()
      const problems: string[] = []
      page.on('request', (request) => {
        if (!request.url().startsWith(origin) && !request.url().startsWith('data:')) problems.push(request.url())
      })
      page.on('response', (response) => {
        if (response.status() >= 400) problems.push(`${response.status()} ${response.url()}`)
      })
      page.on('pageerror', (error) => problems.push(error.message))
      await page.goto(origin + BASE, { waitUntil: 'networkidle' })
      await page.click('.VPNavBarSearchButton, .DocSearch-Button')
      await page.fill('#localsearch-input', 'grace period')
      await page.waitForSelector('#localsearch-list a[href*="api.html"]')
      await page.click('#localsearch-list a[href*="api.html"]')
      await page.waitForURL(/api\.html/)
      await page.waitForLoadState('networkidle')
      await page.getByRole('heading', { level: 1, name: /^The rules/ }).waitFor()
      await page.goto(`${origin}${BASE}openapi.html`, { waitUntil: 'networkidle' })
      await page.getByText('License jobs').first().waitFor({ state: 'attached' })
      expect(await page.textContent('body')).not.toMatch(/Test Request/)
      expect(problems).toEqual([])
    } finally {
      await browser.close()
      server.close()
    }
  },
)
