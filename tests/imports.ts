/**
 * Defines the rules of imports. Packages never import services, services never import each other, and the engine imports no
 * module that does I/O. `violations` takes the path and the text of a file, so that a test can verify the rules with examples.
 */

import { posix } from 'node:path'

import { isSource } from './files.ts'

interface Rule {
  /** The modules that the sources may import. `types:` before a name allows only its types. */
  modules: readonly string[]
  /** Whether modules of Node are allowed. */
  node: boolean
}

/**
 * The workspaces that may import only a fixed list of modules. The address package uses only pure functions of `node:net`. All
 * other workspaces may import every package except the testkit.
 */
const RULES: Readonly<Record<string, Rule>> = {
  'packages/engine': { modules: [], node: false },
  'packages/contract': {
    modules: ['zod', 'zod-openapi', '@keyward/engine/codes', 'types:@keyward/engine'],
    node: false,
  },
  'packages/address': { modules: ['ipaddr.js', 'node:net', 'types:@keyward/engine'], node: false },
  'packages/database': {
    modules: ['kysely', 'pg', 'pg-copy-streams', 'pg-listen', 'types:@keyward/engine'],
    node: true,
  },
  'packages/license-file': { modules: ['@noble/curves'], node: false },
  'packages/client': { modules: ['@keyward/license-file'], node: true },
  'packages/runtime': { modules: ['pino', 'prom-client', 'zod'], node: true },
  'packages/embedded-postgres': { modules: [], node: true },
  'packages/uwebsockets': { modules: ['@uwsjs/core', 'uWebSockets.js'], node: false },
}

interface Import {
  from: string
  typeOnly: boolean
}

const STATEMENT = /(?:^|\n)\s*(?:import|export)\s+(type\s+)?(?:[^'";]*?\sfrom\s+)?['"]([^'"]+)['"]/g
const DYNAMIC = /\bimport\(\s*['"]([^'"]+)['"]/g

export function importsOf(source: string): Import[] {
  const statements = [...source.matchAll(STATEMENT)].map(([, type, from = '']) => ({ from, typeOnly: Boolean(type) }))
  return [...statements, ...[...source.matchAll(DYNAMIC)].map(([, from = '']) => ({ from, typeOnly: false }))]
}

/** Returns the workspace of a path, such as `packages/engine` for `packages/engine/src/index.ts`. */
export function workspaceOf(path: string): string {
  const [top = '', name = ''] = path.split('/')
  return top === 'packages' || top === 'services' ? `${top}/${name}` : top
}

/** Returns one sentence per forbidden import of a TypeScript file. `path` is relative to the root. */
export function violations(path: string, source: string): string[] {
  const workspace = workspaceOf(path)
  return importsOf(source).flatMap((found) => {
    const reason = found.from.startsWith('.')
      ? relativeReason(path, workspace, found.from)
      : moduleReason(workspace, isSource(path), found)
    return reason === null ? [] : [`${path} imports ${found.from}: ${reason}`]
  })
}

function relativeReason(path: string, workspace: string, from: string): string | null {
  const target = posix.join(posix.dirname(path), from)
  if (workspaceOf(target) !== workspace) return 'another workspace is imported by its package name'
  return wallReason(path, target)
}

/** The folders that each folder must not import. */
const WALLS: Readonly<Record<string, readonly string[]>> = {
  // Readers and the writer share only the memory.
  'packages/engine/src/memory': ['packages/engine/src/read', 'packages/engine/src/write'],
  'packages/engine/src/read': ['packages/engine/src/write'],
  'packages/engine/src/write': ['packages/engine/src/read'],
  // The folders that serve checks and the folder that follows the change log share only the index.
  'services/validator/src/http': ['services/validator/src/feed', 'services/validator/src/endpoints'],
  'services/validator/src/endpoints': ['services/validator/src/feed'],
  'services/validator/src/feed': ['services/validator/src/http', 'services/validator/src/endpoints'],
}

function wallReason(path: string, target: string): string | null {
  for (const [folder, others] of Object.entries(WALLS)) {
    const other = path.startsWith(`${folder}/`) ? others.find((one) => target.startsWith(`${one}/`)) : undefined
    if (other !== undefined) return `${folder} never imports ${other}`
  }
  return null
}

/** The packages of uWebSockets.js, one for each release. Only packages/uwebsockets decides which of them is loaded. */
const HTTP_LIBRARIES = new Set(['@uwsjs/core', 'uWebSockets.js'])

/** The validator for other programs (docs/api.md#h15), which the package `keyward` exports too. */
const EMBEDDED = '@keyward/validator/embedded'

function moduleReason(workspace: string, inSource: boolean, found: Import): string | null {
  const name = packageOf(found.from)
  const isService = name === '@keyward/validator' || name === '@keyward/management'
  if (isService && found.from !== EMBEDDED) return 'services are never imported'
  if (HTTP_LIBRARIES.has(name) && workspace !== 'packages/uwebsockets') return 'only packages/uwebsockets imports it'
  if (!inSource) return null
  const mayTest = workspace === 'bench' || workspace === 'packages/testkit'
  if (name === '@keyward/testkit' && !mayTest) return 'only tests import the testkit'
  const rule = RULES[workspace]
  if (!rule) return null
  if (rule.modules.includes(name) || rule.modules.includes(found.from)) return null
  if (found.from.startsWith('node:')) return rule.node ? null : 'modules that do I/O are not allowed here'
  if (rule.modules.includes(`types:${name}`)) return found.typeOnly ? null : 'only its types are allowed'
  return 'not in the list of this package'
}

function packageOf(from: string): string {
  return from
    .split('/')
    .slice(0, from.startsWith('@') ? 2 : 1)
    .join('/')
}
