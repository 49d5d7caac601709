import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, join } from 'node:path'

import { expect, test } from 'vitest'
import { z } from 'zod'

import { projectFiles, read, ROOT } from './files.ts'

const documents = projectFiles().filter((path) => path.endsWith('.md'))

/** Returns the anchors of a document: those that GitHub derives from headings, and explicit ones like `<a id="v3"></a>`. */
function anchors(path: string): Set<string> {
  const headings = [...read(path).matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replaceAll(' ', '-'),
  )
  // GitHub numbers headings that are equal: `c`, `c-1`.
  const numbered = headings.map((heading, i) => {
    const before = headings.slice(0, i).filter((other) => other === heading).length
    return before === 0 ? heading : `${heading}-${before}`
  })
  return new Set([...numbered, ...explicitAnchors(path)])
}

function explicitAnchors(path: string): string[] {
  return [...read(path).matchAll(/^<a id="([a-z0-9-]+)"><\/a>$/gm)].map(([, id = '']) => id)
}

test('every relative link resolves to a file and to an anchor in it', () => {
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

test('no two decisions share a number', () => {
  const numbers = documents.flatMap((path) => /^docs\/decisions\/(\d+)-/.exec(path)?.[1] ?? [])
  expect(numbers.length).toBeGreaterThan(30)
  expect(new Set(numbers).size).toBe(numbers.length)
})

test('every rule has an anchor with its number and an entry in the table of contents', () => {
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

test('every document and anchor in a comment exists', () => {
  const cited = projectFiles()
    .filter((path) => /\.(?:ts|mjs|js|sql|ya?ml|cfg|conf)$/.test(path))
    .flatMap((path) => [...read(path).matchAll(/\bdocs\/[\w./-]+\.md(?:#[\w-]+)?/g)].map(([link]) => ({ path, link })))
  const broken = cited.filter(({ link }) => {
    const [file = '', anchor] = link.split('#')
    return !existsSync(join(ROOT, file)) || (anchor !== undefined && !anchors(file).has(anchor))
  })
  expect(broken).toEqual([])
})

/** Returns the rows of the tables in a rule of docs/api.md as cells. */
function rowsOf(rule: string): string[][] {
  const [, text = ''] = read('docs/api.md').split(`<a id="${rule}"></a>`)
  const [own = ''] = text.split('<a id=')
  return own
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) => line.split('|').map((cell) => cell.trim()))
}

test('docs/api.md lists every code of a check with its message', () => {
  const source = read('packages/contract/src/codes.ts')
  const messages = [...source.matchAll(/^ {2}([A-Z_]+): '(.+)',$/gm)].map(([, code, message]) => [code, message])
  const table = [...read('docs/api.md').matchAll(/^\| `([A-Z_]+)` \| (The|No|This) (.+) \|$/gm)]
  expect(messages).toHaveLength(8)
  expect(table.map(([, code, first = '', rest = '']) => [code, `${first} ${rest}`])).toEqual(messages)
})

test('docs/api.md lists every code of a problem with its status', () => {
  const source = read('packages/contract/src/errors.ts')
  const problems = [...source.matchAll(/^ {2}([A-Z_]+): \{ status: (\d+),/gm)].map(
    ([, code, status]) => `${status} ${code}`,
  )
  const listed = rowsOf('m5').flatMap(([, statuses = '', codes = '']) => {
    const numbers = statuses.match(/\d{3}/g) ?? []
    return (codes.match(/`[A-Z_]+`/g) ?? []).flatMap((code) =>
      numbers.map((status) => `${status} ${code.slice(1, -1)}`),
    )
  })
  expect(problems.length).toBeGreaterThan(30)
  expect(problems.filter((problem) => !listed.includes(problem))).toEqual([])
  const codes = new Set(problems.map((problem) => problem.slice(4)))
  expect(listed.filter((entry) => !codes.has(entry.slice(4)))).toEqual([])
})

test('docs/api.md#a2 lists every permission', () => {
  const permissions = [...read('packages/contract/src/management/permissions.ts').matchAll(/^ {2}'([\w.-]+)',$/gm)]
  const rule = /^\*\*A2\.[^]*?\n\n/m.exec(read('docs/api.md'))?.[0] ?? ''
  expect(permissions.length).toBeGreaterThan(9)
  expect(permissions.map(([, name = '']) => name).filter((name) => !rule.includes(`\`${name}\``))).toEqual([])
})

test('every JSON example in a document is valid JSON', () => {
  const broken = documents.flatMap((path) =>
    [...read(path).matchAll(/^```json\n([^]*?)^```/gm)].flatMap(([, example = '']) => {
      try {
        JSON.parse(example)
        return []
      } catch (error) {
        return [`${path}: ${String(error)} in ${example}`]
      }
    }),
  )
  expect(broken).toEqual([])
})

test('docs/configuration.md lists exactly the variables that the programs read', () => {
  const sources = projectFiles().filter((path) =>
    /^services\/[^/]+\/src\/config\.ts$|^infra\/(?:start\/config|migrate\/command)\.ts$/.test(path),
  )
  const taken = sources.flatMap((path) =>
    [...read(path).matchAll(/^ +([A-Z][A-Z_]{2,}): /gm)].map(([, name]) => `KEYWARD_${name}`),
  )
  const table = read('docs/configuration.md')
    .split('\n')
    .filter((line) => line.startsWith('| `') && line.split(/(?<!\\)\|/).length === 6)
    .flatMap((line) => line.split('|')[1]?.match(/[A-Z][A-Z_]{2,}/g) ?? [])
  expect(new Set(table)).toEqual(new Set(taken))
})

test('every npm script in a document exists', () => {
  const { scripts } = z.object({ scripts: z.record(z.string(), z.string()) }).parse(JSON.parse(read('package.json')))
  const missing = documents.flatMap((path) =>
    [...read(path).matchAll(/\bnpm (?:run (?:--silent )?)?([a-z][\w:-]*)/g)].flatMap(([command, name = '']) => {
      const isScript = command.includes(' run ') || name === 'start' || name === 'test'
      return isScript && !Object.hasOwn(scripts, name) ? [`${path}: ${command}`] : []
    }),
  )
  expect(missing).toEqual([])
})

/** The paths that programs write. */
const WRITTEN = /^(?:bench\/results\/|infra\/site\/dist$)/

test('every path in a code span of a document exists, except files that programs write', () => {
  const missing = documents.flatMap((path) =>
    [...read(path).matchAll(/`((?:packages|services|infra|bench|tests|docs)\/[\w./-]*)`/g)].flatMap(([, name = '']) =>
      existsSync(join(ROOT, name)) || WRITTEN.test(name) ? [] : [`${path}: ${name}`],
    ),
  )
  expect(missing).toEqual([])
})

test('every file in docs/recipes.md contains the symbol beside it', () => {
  const steps = [...read('docs/recipes.md').matchAll(/^\| \d+ \| `([\w./-]+)` \| `([\w.]+)` \|/gm)]
  expect(steps.length).toBeGreaterThan(50)
  const missing = steps.filter(
    ([, path = '', symbol = '']) => !existsSync(join(ROOT, path)) || !read(path).includes(symbol),
  )
  expect(missing.map(([row]) => row)).toEqual([])
})

test('every request in a code span of a document is one of the API', () => {
  const contract = projectFiles().filter((path) => path.startsWith('packages/contract/src/'))
  const routes = contract
    .map(read)
    .join('')
    .matchAll(/\broute: '([A-Z]+ \/[^']*)'/g)
  const paths = read('services/validator/src/endpoints/routes.ts').matchAll(/'(\/api\/v\d\/[\w/-]+)'/g)
  const served = new Set([
    ...Array.from(routes, ([, route = '']) => route.replaceAll(/\{\w+\}/g, '{}')),
    ...Array.from(paths, ([, path = '']) => [`GET ${path}`, `POST ${path}`]).flat(),
    'POST /decide',
    'POST /decide-batch',
  ])
  expect(served.size).toBeGreaterThan(100)
  const isServed = (request: string) =>
    ['', '/api/v1'].some((base) => served.has(request.replace(' /', ` ${base}/`))) ||
    served.has(request.replace(' /api/v1/', ' /'))
  const unknown = documents.flatMap((path) =>
    [...read(path).matchAll(/`((?:GET|POST|PUT|PATCH|DELETE) \/[^`\s?]*)/g)].flatMap(([, request = '']) =>
      isServed(request.replaceAll(/\{\w+\}/g, '{}')) ? [] : [`${path}: ${request}`],
    ),
  )
  expect(unknown).toEqual([])
})

test('every example in JavaScript or TypeScript parses, and imports only what a package exports', () => {
  const examples = documents.flatMap((path) =>
    [...read(path).matchAll(/^```(?:js|ts)\n([^]*?)^```/gm)].map(([, code = '']) => ({ path, code })),
  )
  expect(examples.length).toBeGreaterThan(6)
  const entries: Readonly<Record<string, string>> = {
    '@keyward/client': 'packages/client/src/index.ts',
    '@keyward/client/node': 'packages/client/src/node.ts',
    '@keyward/client/browser': 'packages/client/src/browser.ts',
    '@keyward/client/management': 'packages/client/scripts/management.ts',
    'keyward/embedded': 'services/validator/src/embedded/embedded.ts',
  }
  for (const { path, code } of examples) {
    expect(() => stripTypeScriptTypes(code), path).not.toThrow()
    for (const [, names = '', from = ''] of code.matchAll(
      /import \{ ([^}]+) \} from '((?:@keyward\/client|keyward\/)[\w/]*)'/g,
    ))
      for (const name of names.split(', '))
        expect(read(entries[from] ?? ''), `${path}: ${from}`).toMatch(new RegExp(`\\b${name}\\b`))
  }
})

test('the example of the engine prints the verdict that it states', () => {
  const [, code = ''] = /^```ts\n([^]*?)^```/m.exec(read('packages/engine/README.md')) ?? []
  const [, verdict = ''] = /\/\/ ([A-Z_]+)\n$/.exec(code) ?? []
  const output = execFileSync(process.execPath, ['--input-type=module-typescript', '--eval', code], {
    cwd: join(ROOT, 'packages/engine'),
    encoding: 'utf8',
  })
  expect(verdict).not.toBe('')
  expect(output.trim()).toBe(verdict)
})

test('every metric in a document is exported by a service', () => {
  const sources = projectFiles().filter((path) =>
    /^(?:services|packages)\/.*src\/.*\.ts$|^packages\/database\/grants\.sql$|^infra\/kubernetes\/.*\.yaml$/.test(path),
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

test('/openapi.json has exactly the paths of the validator', () => {
  const pathsIn = (path: string) =>
    new Set([...read(path).matchAll(/^ {2}.*'(\/api\/v\d\/[\w/-]+)'/gm)].map(([, found]) => found))
  const served = pathsIn('services/validator/src/endpoints/routes.ts')
  expect(served).toContain('/api/v1/activate')
  expect(pathsIn('services/management/src/openapi/validation-api.ts')).toEqual(served)
})
