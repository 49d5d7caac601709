import { describe, expect, test } from 'vitest'

import { projectFiles, read } from './files.ts'
import { folderCircles, importsOf, violations, workspaceOf } from './imports.ts'

const files = projectFiles().filter((path) => /^(?:packages|services|infra|bench|tests)\/.*\.ts$/.test(path))

const WITHOUT_CIRCLES = ['services/validator']

test('no file imports what it may not', () => {
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

test('no two folders of a workspace import each other', () => {
  const circles = WITHOUT_CIRCLES.flatMap((workspace) =>
    folderCircles(
      workspace,
      files.map((path) => ({ path, source: read(path) })),
    ),
  )
  expect(circles).toEqual([])
})

test('a circle of folders is found through a third folder; files directly in src are left out', () => {
  const source = (path: string, from: string) => ({ path: `infra/src/${path}`, source: `import { x } from '${from}'` })
  const sources = [source('a/1.ts', '../b/1.ts'), source('b/2.ts', '../c/1.ts'), source('main.ts', './a/1.ts')]
  expect(folderCircles('infra', [...sources, source('c/1.ts', '../main.ts')])).toEqual([])
  expect(folderCircles('infra', [...sources, source('c/1.ts', '../a/2.ts')])).toEqual([
    'infra/src: a ⇄ b',
    'infra/src: a ⇄ c',
    'infra/src: b ⇄ c',
  ])
})

describe('the rules see', () => {
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
    ['services/validator/src/feed/a/b.ts', `import type { X } from '../../http/c.ts'`],
    ['packages/engine/src/a.ts', `import { x } from '../../database/src/index.ts'`],
    ['packages/engine/src/read/a.ts', `import type { X } from '../write/b.ts'`],
    ['packages/engine/src/write/a.ts', `import { x } from '../read/b.ts'`],
    ['packages/engine/src/memory/a.ts', `import { x } from '../read/b.ts'`],
    ['infra/start/a.ts', `import { random } from '@keyward/testkit'`],
    ['infra/start/a.ts', `import { x } from '../../services/validator/src/validator.ts'`],
  ])('%s: %s', (path, source) => {
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
  ])('nothing wrong in %s', (path, source) => {
    expect(violations(path, source)).toEqual([])
  })
})
