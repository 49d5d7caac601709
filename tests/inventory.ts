/**
 * `npm run inventory`: prints the size and the structure of the repository as a table. `npm run inventory -- REVISION` prints the figures
 * of a revision beside them. The console must be built and the client packed for their sizes, so they are measured only for the work tree.
 */

import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, posix } from 'node:path'

import { CONSOLE_FOLDER } from '@keyward/console'
import { z } from 'zod'

import { ROOT } from './files.ts'
import { folderCircles } from './folders.ts'
import { importsOf, workspaceOf } from './imports.ts'

const CODE = /\.(?:ts|tsx|sql|css|mjs|lua|py|go|java|php|cs|hpp|h|cpp|rs)$/
const TEST = /(?:^|\/)tests?\/|\.test\.|vectors/
/** A sequence of this many lines that occurs again is a duplicate. Blank lines and imports do not count. */
const DUPLICATE_LINES = 8

type Table = Map<string, string | number>

/** Returns the figures of a tree. `read` returns the text of a file. */
function measure(paths: readonly string[], read: (path: string) => string): Table {
  const table: Table = new Map()
  const texts = new Map(
    paths.filter((path) => CODE.test(path) || path.endsWith('.md')).map((path) => [path, read(path)]),
  )
  const code = [...texts].filter(([path]) => CODE.test(path))
  const sources = code.filter(([path]) => !TEST.test(path))
  const programs = new Map(sources.filter(([path]) => /\.tsx?$/.test(path)))
  const parts: [name: string, files: [string, string][]][] = [
    ['source lines', sources],
    ['test lines', code.filter(([path]) => TEST.test(path))],
    ['document lines', [...texts].filter(([path]) => path.endsWith('.md'))],
  ]
  for (const [name, files] of parts) {
    table.set(name, sum(files.map(([, text]) => lines(text))))
    const groups = [...Map.groupBy(files, ([path]) => workspaceOf(path))].map(
      ([workspace, own]) => [workspace, sum(own.map(([, text]) => lines(text)))] as const,
    )
    for (const [workspace, count] of groups.toSorted((a, b) => b[1] - a[1])) table.set(`${name}: ${workspace}`, count)
  }
  const folders = [...Map.groupBy(new Set([...programs.keys()].map((path) => posix.dirname(path))), workspaceOf)]
  const arrows = arrowsOf(programs)
  for (const [workspace, own] of [['', folders.flatMap(([, all]) => all)] as const, ...folders]) {
    const found = [...arrows].filter(([name]) => workspace === '' || name === workspace).flatMap(([, all]) => all)
    const back = found.filter(({ from, to }) => found.some((other) => other.from === to && other.to === from)).length
    const name = workspace === '' ? 'folders, imports between them' : `folders: ${workspace}`
    table.set(name, `${own.length}, ${found.length} imports, ${back} mutual`)
  }
  table.set('circular imports between folders', folderCircles(programs).length)
  const duplicates = duplicateLines(sources)
  table.set('duplicated source lines', sum([...duplicates.values()]))
  for (const [workspace, count] of duplicates) table.set(`duplicated source lines: ${workspace}`, count)
  for (const [name, count] of exportedNames(programs, code)) table.set(name, count)
  const manifests = paths.filter((path) => /(?:^|\/)package\.json$/.test(path) && !TEST.test(path)).map(read)
  table.set('dependencies, production', dependencies(manifests, ['dependencies', 'optionalDependencies']))
  table.set('dependencies, development', dependencies(manifests, ['devDependencies']))
  return table
}

function lines(text: string): number {
  return text.split('\n').length - 1
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

/** Returns the imports between folders of a workspace, each once. */
function arrowsOf(programs: ReadonlyMap<string, string>): Map<string, { from: string; to: string }[]> {
  const pairs = [...programs].flatMap(([path, text]) =>
    importsOf(text).flatMap(({ from: imported }) => {
      const [from, to] = [posix.dirname(path), posix.dirname(posix.join(posix.dirname(path), imported))]
      return imported.startsWith('.') && from !== to && workspaceOf(`${to}/x`) === workspaceOf(path)
        ? [`${from} ${to}`]
        : []
    }),
  )
  const arrows = [...new Set(pairs)].map((pair) => ({ from: pair.split(' ')[0] ?? '', to: pair.split(' ')[1] ?? '' }))
  return Map.groupBy(arrows, ({ from }) => workspaceOf(`${from}/x`))
}

/** Returns the lines that repeat an earlier sequence of lines, by workspace. */
function duplicateLines(files: readonly [path: string, text: string][]): Map<string, number> {
  const seen = new Set<string>()
  const counts = new Map<string, number>()
  for (const [path, text] of files) {
    const own = text.split('\n').flatMap((line) => (/^\s*(?:import\b|$)/.test(line) ? [] : [line.trim()]))
    let counted = 0
    for (let at = 0; at + DUPLICATE_LINES <= own.length; at += 1) {
      const sequence = own.slice(at, at + DUPLICATE_LINES).join('\n')
      if (seen.has(sequence)) {
        const from = Math.max(counted, at)
        counted = at + DUPLICATE_LINES
        counts.set(workspaceOf(path), (counts.get(workspaceOf(path)) ?? 0) + counted - from)
      } else seen.add(sequence)
    }
  }
  return counts
}

/** Counts exported names. A name counts as imported if another file contains it, so the number without an importer is a lower bound. */
function exportedNames(programs: ReadonlyMap<string, string>, code: readonly [string, string][]): Table {
  const users = new Map<string, Set<string>>()
  for (const [path, text] of code)
    for (const name of new Set(text.match(/[A-Za-z_]\w*/g))) users.set(name, (users.get(name) ?? new Set()).add(path))
  const exported = [...programs].flatMap(([path, text]) =>
    [...text.matchAll(/^export (?:async )?(const|function\*?|class|interface|type) (\w+)/gm)].map(
      ([, kind = '', name = '']) => ({ path, name, isType: kind === 'interface' || kind === 'type' }),
    ),
  )
  const others = exported.map(({ path, name, isType }) => {
    const files = [...(users.get(name) ?? [])].filter((user) => user !== path)
    return { isType, sources: files.filter((file) => !TEST.test(file)).length, all: files.length }
  })
  const count = (of: (one: (typeof others)[number]) => boolean): number => others.filter(of).length
  return new Map([
    ['exported names', exported.length],
    ['exported values that no file imports', count(({ isType, all }) => !isType && all === 0)],
    [
      'exported values that only tests import',
      count(({ isType, all, sources }) => !isType && all > 0 && sources === 0),
    ],
    ['exported types that no file imports', count(({ isType, all }) => isType && all === 0)],
  ])
}

/** Returns the number of different packages, without those of the workspace. */
function dependencies(manifests: readonly string[], fields: readonly string[]): number {
  const names = manifests.flatMap((text) => {
    const manifest = z.record(z.string(), z.unknown()).parse(JSON.parse(text))
    return fields.flatMap((field) => Object.keys(Object(manifest[field])))
  })
  return new Set(names.filter((name) => !name.startsWith('@keyward/'))).size
}

/** Builds the console if necessary, packs the client, and runs the type check. */
function measureBuilds(): Table {
  const npm = (...args: string[]): string =>
    execFileSync('npm', ['run', '--silent', ...args], { cwd: ROOT, encoding: 'utf8' })
  npm('build:console')
  const assets = join(CONSOLE_FOLDER, 'assets')
  const compressed = readdirSync(assets).filter((name) => name.endsWith('.js.gz') || name.endsWith('.css.gz'))
  const folder = mkdtempSync(join(tmpdir(), 'keyward-inventory-'))
  try {
    npm('pack:client', '--', folder)
    const packed = readdirSync(folder).map((name) => statSync(join(folder, name)).size)
    const startedMs = performance.now()
    execFileSync(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc')], { cwd: ROOT })
    const seconds = (performance.now() - startedMs) / 1000
    return new Map<string, string | number>([
      ['console, compressed bytes', sum(compressed.map((name) => statSync(join(assets, name)).size))],
      ['client, packed bytes', sum(packed)],
      ['type check, seconds', seconds.toFixed(1)],
    ])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 2 ** 28 })
}

/** Measures the files of a revision, which are extracted into a temporary folder. */
function measureRevision(revision: string): Table {
  const folder = mkdtempSync(join(tmpdir(), 'keyward-inventory-'))
  try {
    execFileSync('tar', ['-x', '-C', folder], {
      input: execFileSync('git', ['archive', revision], { cwd: ROOT, maxBuffer: 2 ** 28 }),
    })
    const paths = git('ls-tree', '-r', '--name-only', revision).trim().split('\n')
    return measure(paths, (path) => readFileSync(join(folder, path), 'utf8'))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const [revision] = process.argv.slice(2)
const before = revision === undefined ? new Map<string, never>() : measureRevision(revision)
const paths = git('ls-files')
  .trim()
  .split('\n')
  .filter((path) => existsSync(join(ROOT, path)))
const after: Table = new Map([...measure(paths, (path) => readFileSync(join(ROOT, path), 'utf8')), ...measureBuilds()])
for (const name of new Set([...after.keys(), ...before.keys()])) {
  const then = revision === undefined ? '' : String(before.get(name) ?? '–').padStart(36)
  console.log(`${name.padEnd(44)}${then}${String(after.get(name) ?? '–').padStart(36)}`)
}
