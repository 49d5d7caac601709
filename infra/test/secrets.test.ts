/** Tests which files git and the builders of images include from a tree with planted secrets. */

import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { isInstalled } from '../cluster/balancer.ts'
import { INFRA } from './manifests.ts'

const ROOT = join(INFRA, '..')

/** The files in which the documents say to store secrets, and other files in which people store secrets. */
const PLANTED = [
  '.env',
  '.env.production',
  'secrets.env',
  'tls.pem',
  'id_ed25519',
  'dump.sql',
  'credentials.json',
  'production/kustomization.yaml',
  '.keyward/state.json',
  '.keyward/demo.json',
  '.keyward/postgres/global/pg_authid.json',
  'infra/.env',
  'infra/.env.local',
  'infra/tls.pem',
  'infra/tls/tls.pem',
  'infra/kubernetes/overlays/production/secrets.env',
  'infra/tls.key',
  'infra/secrets.env',
  'infra/.keyward/state.json',
  'infra/shared/.env',
  'infra/migrate/master.key',
  'infra/kubernetes/secret.yaml',
  'infra/kubernetes/keyward-secret.yml',
  'infra/kubernetes/secrets.env',
  'infra/docker/.env',
  'packages/cli/.env',
  'packages/cli/bin/token',
  'packages/database/migrations/master.key',
  'packages/runtime/src/.env',
  'services/management/.env',
  'services/management/src/operator.token',
  'services/validator/server.pem',
  'services/validator/src/credentials.json',
]

let tree: string
let tracked: string[]

const git = (folder: string, ...args: string[]): string[] =>
  execFileSync('git', ['-c', 'core.excludesFile=', ...args], { cwd: folder, encoding: 'utf8' })
    .split('\n')
    .filter(Boolean)

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
}

beforeAll(() => {
  tree = mkdtempSync(join(tmpdir(), 'keyward-planted-'))
  tracked = git(ROOT, 'ls-files')
  for (const path of tracked) {
    mkdirSync(dirname(join(tree, path)), { recursive: true })
    copyFileSync(join(ROOT, path), join(tree, path))
  }
  for (const path of PLANTED) {
    mkdirSync(dirname(join(tree, path)), { recursive: true })
    writeFileSync(join(tree, path), 'a planted secret\n')
  }
})

afterAll(() => rmSync(tree, { recursive: true, force: true }))

test('git includes every file of the project and no planted secret', () => {
  git(tree, 'init', '--quiet')
  expect(git(tree, 'ls-files', '--others', '--exclude-standard').toSorted()).toEqual(tracked.toSorted())
})

test('.dockerignore includes the sources and no planted secret', () => {
  const left = filesBelow(tree).filter((path) => isInContext(path) && !path.startsWith('.git/'))
  expect(left.filter((path) => PLANTED.includes(path))).toEqual([])
  expect(
    left.filter(
      (path) =>
        !/\.(?:tsx?|sql|css|svg)$|package\.json$|^infra\/supply-chain\/|^pnpm-|^packages\/cli\/bin\/keyward$/.test(
          path,
        ),
    ),
  ).toEqual([])
  expect(left).toEqual(
    expect.arrayContaining(['package.json', 'infra/migrate/main.ts', 'services/validator/src/main.ts']),
  )
  expect(left.filter((path) => /(?:^|\/)(?:test|docs|bench|node_modules)\//.test(path))).toEqual([])
})

test('every file that an image copies is in the context', () => {
  const context = tracked.filter(isInContext)
  for (const file of readdirSync(join(INFRA, 'docker'))) {
    const text = readFileSync(join(INFRA, 'docker', file), 'utf8')
    const copied = [...text.matchAll(/^COPY (?!--)(.*) \S+$/gm)].flatMap(([, sources]) => sources?.split(' ') ?? [])
    expect(copied.length).toBeGreaterThan(3)
    for (const source of copied) {
      expect(source, file).not.toMatch(/^(?:\.|infra|services)$/)
      const found = context.some((path) => path === source || path.startsWith(`${source}/`))
      expect([file, source, found]).toEqual([file, source, true])
    }
  }
})

describe.skipIf(!isInstalled('podman', 'info'))('podman (needs podman)', () => {
  test('builds an image of the whole context without a planted secret', () => {
    const storage = mkdtempSync(join(tmpdir(), 'keyward-podman-'))
    try {
      const dockerfile = join(storage, 'Dockerfile')
      const out = join(storage, 'out')
      writeFileSync(dockerfile, 'FROM scratch\nCOPY . /keyward\n')
      const engine = ['--root', join(storage, 'root'), '--runroot', join(storage, 'run'), '--storage-driver', 'vfs']
      const build = ['build', '--isolation', 'chroot', '-f', dockerfile, '-o', `type=local,dest=${out}`, tree]
      execFileSync('podman', [...engine, ...build], { stdio: 'pipe' })
      const built = filesBelow(join(out, 'keyward'))
      expect(built.toSorted()).toEqual(tracked.filter(isInContext).toSorted())
    } finally {
      rmSync(storage, { recursive: true, force: true })
    }
  })
})

/** Returns whether .dockerignore includes a file in the context. The last pattern that matches decides. */
function isInContext(path: string): boolean {
  let isIn = true
  for (const line of readFileSync(join(ROOT, '.dockerignore'), 'utf8').split('\n')) {
    if (line === '' || line.startsWith('#')) continue
    const isException = line.startsWith('!')
    if (patternOf(isException ? line.slice(1) : line).test(path)) isIn = isException
  }
  return isIn
}

/** Converts a pattern of .dockerignore to a regular expression. A pattern that matches a folder also matches its content. */
function patternOf(pattern: string): RegExp {
  const converted = pattern
    .replaceAll(/[.+^${}()|[\]\\]/g, String.raw`\$&`)
    .replaceAll('**/', '\u0000')
    .replaceAll('**', '.*')
    .replaceAll('*', '[^/]*')
    .replaceAll('\u0000', '(?:.*/)?')
  return new RegExp(`^${converted}(?:/.*)?$`)
}
