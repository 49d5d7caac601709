import { expect, test } from 'vitest'

import { isSource, projectFiles, read } from './files.ts'

const files = projectFiles()
const programs = files.filter((path) => /\.tsx?$/.test(path))
const texts = files.filter((path) => /\.(?:tsx?|mjs|js|json|ya?ml|md|sql|sh|cfg|conf|html)$|^\.ci\//.test(path))

const lines = (path: string): number => read(path).split('\n').length - 1

/** Returns `path:line: text` of each matching line. This file contains the patterns, so it is excluded. */
function find(paths: readonly string[], pattern: RegExp): string[] {
  return paths
    .filter((path) => path !== 'tests/tidy.test.ts')
    .flatMap((path) =>
      read(path)
        .split('\n')
        .flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1}: ${line.trim().slice(0, 100)}`] : [])),
    )
}

test('no program file has more than 500 lines, and half of the source files have at most 120', () => {
  expect(programs.filter((path) => lines(path) > 500)).toEqual([])
  const sizes = programs.filter(isSource).map(lines)
  expect(sizes.toSorted((a, b) => a - b)[Math.floor(sizes.length / 2)]).toBeLessThanOrEqual(120)
})

/** Words that say nothing about one file in particular. */
const GENERIC =
  /^(?:the|an?|of|and|for|in|to|its?|that|with|all|one|defines?|tests?|returns?|reads?|lists?|screens?|pages?|endpoints?|types?|functions?)$/

/** Returns whether every word of a header that is specific occurs in the path of its file. */
function restatesPath(path: string, header: string): boolean {
  const inPath = path.toLowerCase()
  const specific = (header.toLowerCase().match(/[a-z]+/g) ?? []).filter((word) => !GENERIC.test(word))
  return specific.every((word) => inPath.includes(word.replace(/s$/, '')))
}

test('no file header only restates the path of the file', () => {
  expect(restatesPath('src/customers/customers.ts', 'Defines the endpoints of customers.')).toBe(true)
  expect(restatesPath('src/feed/prune.ts', 'Prunes the log after every reader.')).toBe(false)
  const restating = programs.filter((path) => {
    const header = /^(?:#!.*\n)?\/\*\*((?:[^*]|\*(?!\/))*)\*\/\n\n/.exec(read(path))?.[1]
    return header !== undefined && restatesPath(path, header)
  })
  expect(restating).toEqual([])
})

test('no file contains a TODO or a similar mark', () => {
  expect(find(texts, /\b(?:TODO|FIXME|XXX|HACK)\b/)).toEqual([])
})

test('no comment or cast silences the type checker', () => {
  expect(find(programs, /@ts-(?:ignore|nocheck)|\bas unknown as\b/)).toEqual([])
  const sources = programs.filter(isSource)
  expect(find(sources, /@ts-expect-error/)).toEqual([])
})

test('no test uses skip, only or todo; a test that needs a tool uses skipIf', () => {
  expect(find(programs, /\b(?:test|it|describe)\.(?:only|skip|todo)\b/)).toEqual([])
})

test.each(['vitest.slow.config.ts', 'tests/faults/vitest.config.ts'])('every file that %s names exists', (config) => {
  const longest = [...read(config).matchAll(/^ {2}'(.+\.test\.ts)',$/gm)].map(([, path = '']) => path)
  expect(longest.length).toBeGreaterThan(0)
  expect(longest.filter((path) => !files.includes(path))).toEqual([])
})

test('no file contains a path outside the project or the address of a package registry', () => {
  expect(find(texts, /(?<![\w.$}-])\/(?:work|home\/\w+|Users\/\w+|root\/\w+)\//)).toEqual([])
  expect(find(['pnpm-lock.yaml', ...texts], /\bregistry\.[\w-]+\.(?:com|org|net|io)\b|_authToken|tarball:/)).toEqual([])
})
