/** Tests the style rules of CONTRIBUTING.md that a program can check. Each rule has examples that it must reject and accept. */

import { describe, expect, test } from 'vitest'

import { isSource, projectFiles, read } from './files.ts'

interface Rule {
  name: string
  files: (path: string) => boolean
  /** Returns the excerpts of a file that break the rule. */
  violations: (text: string) => string[]
  rejected: readonly string[]
  accepted: readonly string[]
}

const isProgram = (path: string): boolean => /\.(?:ts|mjs|js)$/.test(path)
const matches = (pattern: RegExp) => (text: string) => [...text.matchAll(pattern)].map(([found]) => found.trim())

/** Matches an SQLSTATE of the classes that the code handles. */
const SQLSTATE = /'(?:08|22|23|25|28|3F|40|42|53|55|57|58|XX)[0-9A-Z]{3}'/g
const LOG_MESSAGE = /\b(?:log|logger)\??\.(?:debug|info|warn|error|fatal)\((?:[^'`"]*, )?(['"`][^\n]*?['"`])\)/g

const rules: readonly Rule[] = [
  {
    name: 'a file header is a /** comment',
    files: (path) => isProgram(path) && !path.includes('/examples/'),
    violations: matches(/^(?:#!.*\n)?(?:\/\/|\/\*(?!\*)).*/g),
    rejected: ['// Reads.\nimport a', '#!/usr/bin/env node\n// Reads.', '/* Reads. */\n\nimport a'],
    accepted: ['/** Reads. */\n\nimport a', 'import a // from b'],
  },
  {
    name: 'a blank line separates the file header from the imports',
    files: isProgram,
    violations: matches(/^(?:#!.*\n)?\/\*\*(?:[^*]|\*(?!\/))*\*\/\nimport /g),
    rejected: ['/** Reads. */\nimport a', '/**\n * Reads.\n */\nimport a'],
    accepted: ['/** Reads. */\n\nimport a', '/** The limit. */\nexport const LIMIT = 1', 'import a\n'],
  },
  {
    name: 'private members are written #name',
    files: isProgram,
    violations: matches(/^ +private (?:static |readonly |async )*\w+.*|constructor\([^)]*\bprivate\b/gm),
    rejected: ['  private readonly name: string', '  constructor(private name: string)'],
    accepted: ['  readonly #name: string', '  // private addresses'],
  },
  {
    name: 'comments cite rules of docs/api.md, not a document outside the project',
    files: (path) => /\.(?:ts|sql|ya?ml|cfg|conf)$/.test(path),
    violations: matches(/(?<!Open)API document\b.*/g),
    rejected: ['/** Plan limits (API document, "Limits"). */'],
    accepted: ['/** Plan limits (docs/api.md#r7). */', 'the OpenAPI document', 'the API documentation'],
  },
  {
    name: 'log messages are lower case, constant and without a full stop',
    files: isSource,
    violations: (text) =>
      [...text.matchAll(LOG_MESSAGE)].flatMap(([, message = '']) =>
        /^'(?:[a-z]|Postgres\b).*[^.]'$/.test(message) ? [] : [message],
      ),
    rejected: [`log.info({ port }, 'Listening')`, `log.warn('stopped.')`, 'this.#log.warn({ a }, `slot ${a}`)'],
    accepted: [`log.info({ port }, 'listening')`, `log.error({ err }, message)`, `log.warn({ a: 'B' }, 'row skipped')`],
  },
  {
    name: 'codes are compared as the numbers that the engine exports',
    files: isSource,
    violations: matches(/\bCODES\.indexOf\(/g),
    rejected: [`const VALID = CODES.indexOf('VALID')`],
    accepted: ['CODES[verdict.code]'],
  },
  {
    name: 'only packages/database names SQLSTATEs',
    files: (path) => isSource(path) && !path.startsWith('packages/database/'),
    violations: matches(SQLSTATE),
    rejected: [`if (error.code === '23505') return`],
    accepted: [`'10000'`, 'isUniqueViolation(error)'],
  },
  {
    // Tests and documents write paths literally, because they state what the API is.
    name: 'console and command line call operations of the contract instead of writing paths of the management API',
    files: (path) => /^packages\/(?:console|cli)\/src\//.test(path),
    violations: matches(/\/api\/v1\b.*/g),
    rejected: ["fetch('/api/v1/products')", 'const path = `${url}/api/v1${path}`'],
    accepted: ["fetch('/api/v2/license/validate')", 'call(products.listProducts, {})'],
  },
  {
    name: 'only the contract defines operations',
    files: (path) => isSource(path) && !path.startsWith('packages/contract/src/'),
    violations: matches(/\broute: ['"`](?:GET|POST|PUT|PATCH|DELETE) \/(?!\$).*/g),
    rejected: ["call({ route: 'GET /products', needs: 'token' }, {})"],
    accepted: ['call(products.listProducts, {})', 'route: `DELETE /${string}/{id}`'],
  },
]

describe.each(rules)('$name', ({ files, violations, rejected, accepted }) => {
  test('holds in every file', () => {
    const paths = projectFiles().filter((path) => files(path) && path !== 'tests/style.test.ts')
    expect(paths.flatMap((path) => violations(read(path)).map((found) => `${path}: ${found}`))).toEqual([])
  })

  test.each(rejected)('rejects %s', (text) => expect(violations(text)).toHaveLength(1))

  test.each(accepted)('accepts %s', (text) => expect(violations(text)).toEqual([]))
})
