/** Lists the pages of the documentation site, which are the documents of the project, in the groups of the sidebar. */

import { globSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'

export const ROOT = join(import.meta.dirname, '../..')
export const REPOSITORY = 'https://github.com/keyward/keyward'

/** The site contains this file beside the pages. */
export const OPENAPI = 'docs/openapi.json'

/** The entries of the first page and of the navigation, one for each role. */
export const ENTRIES = [
  {
    title: 'App developers',
    link: '/for/app-developers',
    details: 'Add license checks to an app, online and offline, in seven languages.',
  },
  {
    title: 'Vendors',
    link: '/for/vendors',
    details: 'Sell licenses, help customers and block abuse, in the console or through the API.',
  },
  {
    title: 'Operators',
    link: '/for/operators',
    details: 'Run Keyward on one machine or in a cluster: install, watch, back up, upgrade.',
  },
  {
    title: 'Contributors',
    link: '/for/contributors',
    details: 'Understand the code, change it, and test the change.',
  },
] as const

export interface Page {
  /** The path of the document in the project. */
  source: string
  /** The path of the page in the site, which ends in `.md` too. */
  path: string
  title: string
}

/** The groups in their order. Each pattern of a group adds the documents that no earlier pattern matches. */
const GROUPS: readonly (readonly [string, readonly string[]])[] = [
  ['Start', ['README.md', 'docs/for/*.md']],
  ['Apps', ['docs/client/quick-start.md', 'docs/client/*.md']],
  ['Guides', ['docs/guides/*.md']],
  ['Reference', ['docs/api.md', 'docs/{configuration,console,webhooks,event-types,glossary}.md']],
  [
    'Operations',
    ['docs/operations.md', 'docs/operations/install.md', 'docs/operations/*.md', 'CHANGELOG.md', 'RELEASES.md'],
  ],
  ['Behavior', ['docs/{reliability,recording,performance,limits}.md', 'SECURITY.md']],
  [
    'Contributing',
    [
      'CONTRIBUTING.md',
      'AGENTS.md',
      'docs/architecture.md',
      'docs/*.md',
      'packages/engine/README.md',
      'bench/README.md',
    ],
  ],
  ['Decisions', ['docs/decisions/README.md', 'docs/decisions/*.md']],
]

export function listGroups(): { name: string; pages: Page[] }[] {
  const seen = new Set<string>()
  return GROUPS.map(([name, patterns]) => ({
    name,
    pages: patterns.flatMap((pattern) =>
      globSync(pattern, { cwd: ROOT })
        .toSorted()
        .filter((source) => !seen.has(source) && seen.add(source))
        .map((source) => ({ source, path: pathOf(source), title: titleOf(source) })),
    ),
  }))
}

/** Returns the Markdown files of the project that are not pages. */
export function listOtherDocuments(pages: ReadonlySet<string>): string[] {
  const exclude = (path: string): boolean => ['node_modules', 'dist'].includes(posix.basename(path))
  return globSync('**/*.md', { cwd: ROOT, exclude }).filter((path) => !pages.has(path))
}

/** Returns the path in the site of any document: the README of a folder is its index, and `docs/` is the root. */
export function pathOf(source: string): string {
  return source.replace(/^docs\//, '').replace(/(^|\/)README\.md$/, '$1index.md')
}

/**
 * Returns the link of a page for a relative link of a document. A link to another file leads to the repository.
 */
export function resolveLink(source: string, link: string, pages: ReadonlySet<string>): string {
  if (/^[a-z]+:|^#|^\/\//.test(link)) return link
  const [file = '', anchor] = link.split('#')
  const target = posix.join(posix.dirname(source), decodeURI(file))
  const hash = anchor === undefined ? '' : `#${anchor}`
  if (target === OPENAPI) return '/openapi.json'
  const page = [target, posix.join(target, 'README.md')].find((path) => pages.has(path))
  if (page !== undefined) return `/${pathOf(page)}${hash}`
  return `${REPOSITORY}/${posix.extname(target) === '' ? 'tree' : 'blob'}/main/${target}${hash}`
}

/** Returns the text of a document with the links that its page has. Code keeps its text. */
export function resolveLinks(source: string, text: string, pages: ReadonlySet<string>, base: string): string {
  const resolve = (link: string): string => resolveLink(source, link, pages).replace(/^\//, base)
  return text
    .split(/(^```[^]*?^```$|`[^`\n]+`)/m)
    .map((part, index) =>
      index % 2 === 1
        ? part
        : part.replaceAll(/(\]\()([^()\s]+)(?=\))/g, (_, start: string, link: string) => start + resolve(link)),
    )
    .join('')
}

/** Returns the anchor that GitHub derives from a heading. */
export function slugify(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(' ', '-')
}

function titleOf(source: string): string {
  const [, title = source] = /^# (.+)$/m.exec(readFileSync(join(ROOT, source), 'utf8')) ?? []
  return title.replaceAll('`', '')
}
