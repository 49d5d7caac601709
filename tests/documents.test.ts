import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'

import { expect, test } from 'vitest'
import { z } from 'zod'

import { projectFiles, read, ROOT } from './files.ts'

const documents = projectFiles().filter((path) => path.endsWith('.md'))

/** The anchors of a document: those that GitHub derives from headings, and explicit `<a id="v3"></a>`. */
function anchors(path: string): Set<string> {
  const headings = [...read(path).matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replaceAll(' ', '-'),
  )
  return new Set([...headings, ...explicitAnchors(path)])
}

function explicitAnchors(path: string): string[] {
  return [...read(path).matchAll(/^<a id="([a-z0-9-]+)"><\/a>$/gm)].map(([, id = '']) => id)
}

test('every relative link leads to a file, and to a heading that it has', () => {
  const broken = documents.flatMap((path) =>
    [...read(path).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link = '']) => {
      if (/^[a-z]+:/.test(link)) return []
      const [file = '', anchor] = link.split('#')
      const target = file === '' ? path : join(dirname(path), file)
      if (!existsSync(join(ROOT, target))) return [`${path}: ${link}`]
      return anchor === undefined || anchors(target).has(anchor) ? [] : [`${path}: ${link}`]
    }),
  )
  expect(broken).toEqual([])
})

test('every rule has one anchor, a bold number that fits it, and a place in the table of contents', () => {
  const rules = read('docs/api.md')
  const ids = explicitAnchors('docs/api.md')
  const titles = [...rules.matchAll(/^<a id="([a-z0-9-]+)"><\/a>\n\*\*([A-Z]\d+)\. /gm)]
  expect(titles.map(([, , number = '']) => number.toLowerCase())).toEqual(ids)
  expect(new Set(ids).size).toBe(ids.length)
  const contents = rules
    .split('\n')
    .filter((line) => line.startsWith('| ['))
    .join('\n')
  expect([...contents.matchAll(/\[[A-Z]\d+\]\(#([a-z]\d+)\)/g)].map(([, id]) => id)).toEqual(ids)
})

test('every document and anchor that the code cites exists', () => {
  const cited = projectFiles()
    .filter((path) => /\.(?:ts|mjs|js|sql|ya?ml|cfg|conf)$/.test(path))
    .flatMap((path) => [...read(path).matchAll(/\bdocs\/[\w./-]+\.md(?:#[\w-]+)?/g)].map(([link]) => ({ path, link })))
  const broken = cited.filter(({ link }) => {
    const [file = '', anchor] = link.split('#')
    return !existsSync(join(ROOT, file)) || (anchor !== undefined && !anchors(file).has(anchor))
  })
  expect(broken).toEqual([])
})

test('the table of variables names those that the programs read, and no others', () => {
  const sources = projectFiles().filter((path) =>
    /^services\/[^/]+\/src\/config\.ts$|^infra\/(?:start\/config|migrate\/main)\.ts$/.test(path),
  )
  const taken = sources.flatMap((path) => [...read(path).matchAll(/^ +([A-Z][A-Z_]{2,}): /gm)].map(([, name]) => name))
  const table = read('docs/configuration.md')
    .split('\n')
    .filter((line) => line.startsWith('| `') && line.split(/(?<!\\)\|/).length === 6)
    .flatMap((line) => line.split('|')[1]?.match(/[A-Z][A-Z_]{2,}/g) ?? [])
  expect(new Set(table)).toEqual(new Set(taken))
})

test('every npm script that a document names exists', () => {
  const { scripts } = z.object({ scripts: z.record(z.string(), z.string()) }).parse(JSON.parse(read('package.json')))
  const missing = documents.flatMap((path) =>
    [...read(path).matchAll(/\bnpm (?:run (?:--silent )?)?([a-z][\w:-]*)/g)].flatMap(([command, name = '']) => {
      const isScript = command.includes(' run ') || name === 'start' || name === 'test'
      return isScript && !Object.hasOwn(scripts, name) ? [`${path}: ${command}`] : []
    }),
  )
  expect(missing).toEqual([])
})

test('every path that a document names in code exists, but for what programs write', () => {
  const missing = documents.flatMap((path) =>
    [...read(path).matchAll(/`((?:packages|services|infra|bench|tests|docs)\/[\w./-]*)`/g)].flatMap(([, name = '']) =>
      existsSync(join(ROOT, name)) || name.startsWith('bench/results/') ? [] : [`${path}: ${name}`],
    ),
  )
  expect(missing).toEqual([])
})

test('every metric that a document names is one that the services keep', () => {
  const sources = projectFiles().filter((path) =>
    /^(?:services|packages)\/.*src\/.*\.ts$|^infra\/kubernetes\/.*\.yaml$/.test(path),
  )
  const kept = new Set(sources.flatMap((path) => read(path).match(/\bkeyward_[a-z_]+/g) ?? []))
  const unknown = documents.flatMap((path) =>
    [...read(path).matchAll(/\bkeyward_[a-z_]+(?=[`{[(])/g)].flatMap(([name]) =>
      kept.has(name) || kept.has(name.replace(/_(?:bucket|count|sum)$/, '')) ? [] : [`${path}: ${name}`],
    ),
  )
  expect(kept.size).toBeGreaterThan(20)
  expect(unknown).toEqual([])
})
