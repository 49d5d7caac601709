/** The configuration of VitePress, which `.vitepress/config.js` exports. */

import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

import { defineConfig } from 'vitepress'
import { z } from 'zod'

import { ENTRIES, listGroups, listOtherDocuments, REPOSITORY, resolveLink, ROOT, slugify } from './pages.ts'

const groups = listGroups()
const pages = groups.flatMap((group) => group.pages)
const sources = new Set(pages.map(({ source }) => source))
const tokens = readFileSync(join(ROOT, 'packages/console/src/styles/tokens.css'), 'utf8')

/** The tokens of the console for the variables of the default theme. Their values contain both themes. */
const COLORS: Readonly<Record<string, string>> = {
  '--vp-c-brand-1': '--accent-text',
  '--vp-c-brand-2': '--accent-hover',
  '--vp-c-brand-3': '--accent',
  '--vp-c-brand-soft': '--accent-soft',
  '--vp-button-brand-bg': '--accent',
  '--vp-button-brand-hover-bg': '--accent-hover',
  '--vp-button-brand-active-bg': '--accent-hover',
  '--vp-c-bg': '--surface',
  '--vp-c-bg-alt': '--rail-bg',
  '--vp-c-bg-soft': '--sunken',
  '--vp-c-bg-elv': '--raised',
  '--vp-c-border': '--border-strong',
  '--vp-c-divider': '--border',
  '--vp-c-gutter': '--border',
  '--vp-c-text-1': '--text',
  '--vp-c-text-2': '--text-2',
  '--vp-c-text-3': '--text-3',
}

function tokenOf(name: string): string {
  const value = tokens.split(`\n  ${name}: `)[1]?.split(';')[0]
  if (value === undefined) throw new Error(`tokens.css has no token ${name}`)
  return value
}

const colors = Object.entries(COLORS).map(([name, token]) => `${name}:${tokenOf(token)}`)

export default defineConfig({
  title: 'Keyward',
  description: 'Issues and checks software licenses.',
  srcDir: '../..',
  cacheDir: `${ROOT}/node_modules/.cache/site`,
  srcExclude: listOtherDocuments(sources),
  rewrites: Object.fromEntries(pages.map(({ source, path }) => [source, path])),
  // The first selector is more specific than those of the theme. The hero of the first page replaces the heading of README.md.
  head: [
    ['style', {}, `:root:root{${colors.join(';')}} .VPHome .vp-doc{margin-top:48px} .VPHome .vp-doc h1{display:none}`],
  ],
  transformHead: ({ siteData }) => [['link', { rel: 'icon', type: 'image/svg+xml', href: `${siteData.base}icon.svg` }]],
  transformPageData({ relativePath, frontmatter }) {
    if (relativePath !== 'index.md') return
    const actions = [
      { text: 'Quick start', link: '/client/quick-start' },
      { text: 'API reference', link: '/openapi.html', theme: 'alt', target: '_self' },
    ]
    const hero = { name: 'Keyward', text: 'Issues and checks software licenses', actions }
    const features = ENTRIES.map(({ title, details, link }) => ({ title, details, link }))
    Object.assign(frontmatter, { layout: 'home', hero, features })
  },
  themeConfig: {
    logo: '/icon.svg',
    nav: [
      ...ENTRIES.map(({ title, link }) => ({ text: title, link })),
      { text: 'API', link: '/openapi.html', target: '_self' },
      { text: 'Source', link: REPOSITORY },
    ],
    sidebar: groups.map(({ name, pages: items }, index) => ({
      text: name,
      collapsed: index > 1,
      items: items.map(({ title, path }) => ({ text: title, link: `/${path}` })),
    })),
    outline: [2, 3],
    search: { provider: 'local' },
  },
  markdown: {
    anchor: { slugify },
    config(md) {
      md.core.ruler.push('links of documents', ({ tokens: list, env }) => {
        const source = sourceOf(env)
        for (const token of list.flatMap((one) => [one, ...(one.children ?? [])])) {
          if (token.type.startsWith('html_'))
            token.content = token.content.replaceAll(/((?:src|srcset)=")(?=docs\/)/g, '$1./')
          const href = token.type === 'link_open' ? token.attrGet('href') : null
          if (href !== null) token.attrSet('href', resolveLink(source, href, sources))
        }
      })
    },
  },
})

const environment = z.object({ path: z.string(), realPath: z.string().optional() })

/** Returns the path in the project of the document that VitePress renders. */
function sourceOf(env: unknown): string {
  const { path, realPath } = environment.parse(env)
  return relative(ROOT, realPath ?? path)
}
