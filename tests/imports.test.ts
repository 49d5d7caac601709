import { describe, expect, test } from 'vitest'

import { projectFiles, read } from './files.ts'
import { folderCircles } from './folders.ts'
import { importsOf, violations, workspaceOf } from './imports.ts'

const files = projectFiles().filter((path) => /^(?:packages|services|infra|bench|tests)\/.*\.tsx?$/.test(path))

test('no file has a forbidden import', () => {
  expect(files.length).toBeGreaterThan(50)
  expect(files.flatMap((path) => violations(path, read(path)))).toEqual([])
})

test('every module that a workspace imports is declared in its package.json', () => {
  const undeclared = files.flatMap((path) => {
    const workspace = workspaceOf(path)
    if (workspace === 'tests') return []
    const declared = `${read(`${workspace}/package.json`)}${read('package.json')}`
    return importsOf(read(path))
      .map(({ from }) => from)
      .filter((from) => /^[@a-zA-Z]/.test(from) && !from.startsWith('node:'))
      .filter((from) => !declared.includes(`"${/^(?:@[^/]+\/)?[^/]+/.exec(from)?.[0]}"`))
      .map((from) => `${path}: ${from}`)
  })
  expect(undeclared).toEqual([])
})

test('the imports between folders have no cycle', () => {
  const programs = files.filter((path) => !/(?:^|\/)tests?\//.test(path))
  const sources = programs.map((path): [string, string] => [path, read(path)])
  expect(folderCircles(new Map(sources))).toEqual([])
})

describe('folderCircles', () => {
  const imports = (...from: string[]): string => from.map((one) => `import { x } from '${one}'\n`).join('')
  const line: [string, string][] = [
    ['infra/main.ts', imports('./a/1.ts')],
    ['infra/a/1.ts', imports('../b/1.ts', '../config.ts')],
    ['infra/b/2.ts', imports('../c/d/1.ts')],
  ]

  test.each([
    ['through a third folder', ['infra/c/1.ts', imports('../a/2.ts')], 'infra'],
    ['through a file beside them', ['infra/config.ts', imports('./a/2.ts')], 'infra'],
    ['of types', ['infra/c/1.ts', `import type { X } from '../b/2.ts'`], 'infra'],
    ['of a folder and a file in its parent', ['infra/c/0.ts', imports('./d/0.ts')], 'infra/c'],
  ] satisfies [string, [string, string], string][])('finds a cycle %s', (_, added, folder) => {
    const back: [string, string] = ['infra/c/d/0.ts', imports('../0.ts')]
    expect(folderCircles(new Map(line))).toEqual([])
    expect(folderCircles(new Map([...line, back, added])).map((found) => found.split(':', 1)[0])).toEqual([folder])
  })

  test('finds no cycle when a file imports folders that import other files beside it', () => {
    const config: [string, string] = ['infra/config.ts', imports('./text.ts')]
    expect(folderCircles(new Map([...line, config, ['infra/c/1.ts', imports('../config.ts')]]))).toEqual([])
  })
})

describe('the rules of imports', () => {
  test.each([
    ['packages/engine/src/a.ts', `import { readFile } from 'node:fs'`],
    ['packages/engine/src/a.ts', `import type { z } from 'zod'`],
    ['packages/engine/src/a.ts', `const z = await import('zod')`],
    ['packages/address/src/a.ts', `import { CODES } from '@keyward/engine'`],
    ['packages/address/src/a.ts', `import {\n  CODES,\n} from '@keyward/engine'`],
    ['packages/client/src/a.ts', `export * from '@keyward/contract'`],
    ['packages/database/src/a.ts', `import '@keyward/management/main'`],
    ['services/validator/src/a.ts', `import x from '@keyward/management'`],
    ['services/validator/src/a.ts', `import { random } from '@keyward/testkit'`],
    ['services/validator/src/http/a.ts', `import { x } from '../feed/b.ts'`],
    ['services/validator/src/endpoints/a.ts', `import { x } from '../feed/b.ts'`],
    ['services/validator/src/http/a.ts', `import { x } from '../endpoints/b.ts'`],
    ['services/validator/src/feed/a.ts', `import { x } from '../endpoints/b.ts'`],
    ['services/validator/src/feed/a/b.ts', `import type { X } from '../../http/c.ts'`],
    ['packages/engine/src/a.ts', `import { x } from '../../database/src/index.ts'`],
    ['packages/engine/src/read/a.ts', `import type { X } from '../write/b.ts'`],
    ['packages/engine/src/write/a.ts', `import { x } from '../read/b.ts'`],
    ['packages/engine/src/memory/a.ts', `import { x } from '../read/b.ts'`],
    ['infra/start/a.ts', `import { random } from '@keyward/testkit'`],
    ['bench/src/a.ts', `import { App } from 'uWebSockets.js'`],
    ['services/validator/src/a.ts', `import type { HttpResponse } from '@uwsjs/core'`],
    ['infra/start/a.ts', `import { x } from '../../services/validator/src/validator.ts'`],
  ])('rejects an import in %s: %s', (path, source) => {
    expect(violations(path, source)).toHaveLength(1)
  })

  test.each([
    ['packages/address/src/a.ts', `import type { Network } from '@keyward/engine'\nimport ip from 'ipaddr.js'`],
    ['packages/engine/test/a.test.ts', `import { test } from 'vitest'\nimport { random } from '@keyward/testkit'`],
    ['services/validator/src/endpoints/a.ts', `import { x } from '../http/b.ts'\nimport { y } from '../config.ts'`],
    ['services/validator/src/main.ts', `import './http/a.ts'\nimport './feed/b.ts'`],
    ['packages/engine/src/read/a.ts', `import { x } from '../memory/b.ts'\nimport { y } from '../check.ts'`],
    ['bench/src/a.ts', `import { random } from '@keyward/testkit'`],
    ['infra/test/a.ts', `import { random } from '@keyward/testkit'`],
  ])('accepts the imports of %s', (path, source) => {
    expect(violations(path, source)).toEqual([])
  })
})
