/**
 * Builds the npm package `keyward`: the command line, both services, the migration and the start of the demo, as JavaScript. The package has
 * the folders of the workspace and contains all its dependencies, in the versions of the lockfile. Only Node, Postgres and the current
 * release of uWebSockets.js are optional packages of the registry, because each platform has its own.
 */

import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, join, posix, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

import { buildConsole } from '@keyward/console/build'
import { REPOSITORY, VERSION } from '@keyward/contract/version'
import { z } from 'zod'

import { readRecorded } from '../supply-chain/native-binaries.ts'

const BIN = 'infra/release/launcher.js'
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** The programs of the package. pnpm selects their packages. */
const PROGRAMS = ['packages/cli', 'services/validator', 'services/management', 'infra']
/** The folders and files that the package contains besides `src` of every package. */
const MORE = [
  'infra/demo-data',
  'infra/migrate',
  'infra/release/launcher.ts',
  'infra/shared',
  'infra/smoke-test',
  'infra/start',
  'packages/console/dist',
  'packages/console/folder.ts',
  'packages/database/functions',
  'packages/database/grants.sql',
  'packages/database/migrations',
]
/** Parts of packages that no program of this package loads: types, source maps, other builds, and binaries for other versions of Node. */
const UNUSED =
  /(?:\.(?:map|[cm]?ts|flow)|\/scalar-api-reference\.css|\/standalone\.js|\/uws_win32_\w+\.node|\/uws_linux_arm_\d+\.node|\/uws_\w+_(?!127)\d+\.node)$/

const manifestSchema = z.looseObject({
  name: z.string(),
  version: z.string().optional(),
  description: z.string().optional(),
  exports: z.record(z.string(), z.unknown()).or(z.string()).optional(),
  dependencies: z.record(z.string(), z.string()).default({}),
  optionalDependencies: z.record(z.string(), z.string()).default({}),
})
type Manifest = z.output<typeof manifestSchema>

export const readManifest = (folder: string): Manifest =>
  manifestSchema.parse(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')))

/** Builds the package into `target`, an empty folder. Installs from pnpm's store, so that no network is needed after `npm run setup`. */
export async function buildKeyward(target: string): Promise<void> {
  await buildConsole()
  const workspaces = workspacesOf(PROGRAMS)
  copyManifests(target, workspaces)
  installDependencies(target)
  const sources = [...workspaces].filter((one) => existsSync(join(ROOT, one, 'src'))).map((one) => `${one}/src`)
  for (const path of [...sources, ...MORE])
    cpSync(join(ROOT, path), join(target, path), {
      recursive: true,
      filter: (file) => !/\.(?:tsx|css|sha256)$/.test(file),
    })
  rmSync(join(target, 'packages/console/src'), { recursive: true })
  compile(target, exportsOf(workspaces))
  chmodSync(join(target, BIN), 0o755)
  cpSync(join(ROOT, 'LICENSE'), join(target, 'LICENSE'))
  cpSync(join(ROOT, 'infra/release/README.md'), join(target, 'README.md'))
  writeFileSync(join(target, 'package.json'), `${JSON.stringify(await manifest(target), null, 2)}\n`)
}

/** Returns the folders of the programs and of the packages that they depend on. */
function workspacesOf(folders: readonly string[], found = new Set<string>()): Set<string> {
  for (const folder of folders) {
    if (found.has(folder)) continue
    found.add(folder)
    const own = Object.keys(readManifest(join(ROOT, folder)).dependencies).filter((name) =>
      name.startsWith('@keyward/'),
    )
    workspacesOf(
      own.map((name) => name.replace('@keyward', 'packages')),
      found,
    )
  }
  return found
}

function copyManifests(target: string, workspaces: ReadonlySet<string>): void {
  for (const name of [
    'pnpm-lock.yaml',
    'pnpm-workspace.yaml',
    ...[...workspaces, '.'].map((one) => join(one, 'package.json')),
  ])
    cpSync(join(ROOT, name), join(target, name))
}

function installDependencies(target: string): void {
  const filters = PROGRAMS.flatMap((folder) => ['--filter', `{./${folder}}...`])
  const options = [
    '--prod',
    '--frozen-lockfile',
    '--prefer-offline',
    '--no-optional',
    '--config.node-linker=hoisted',
    '--config.package-import-method=copy',
  ]
  execFileSync(process.execPath, [join(ROOT, 'infra/supply-chain/pnpm.mjs'), 'install', ...options, ...filters], {
    cwd: target,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const modules = join(target, 'node_modules')
  for (const name of ['@keyward', '.bin', '.pnpm', '.modules.yaml', '.pnpm-workspace-state-v1.json'])
    rmSync(join(modules, name), { recursive: true, force: true })
  for (const name of ['pnpm-lock.yaml', 'pnpm-workspace.yaml']) rmSync(join(target, name))
  for (const name of ['infra', 'packages', 'services']) rmSync(join(target, name), { recursive: true })
  for (const path of filesBelow(modules)) if (UNUSED.test(path)) rmSync(path)
  // The page at /docs loads only the bundled modules of this package, whose own dependencies are not installed.
  const scalar = join(modules, '@scalar/api-reference/package.json')
  const { dependencies: _dependencies, optionalDependencies: _optional, ...rest } = readManifest(dirname(scalar))
  rmSync(scalar) // The file may be a hard link to pnpm's store, which must not change.
  writeFileSync(scalar, JSON.stringify(rest))
}

export function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
}

/** Returns the path of every exported module, such as `packages/contract/src/version.ts` for `@keyward/contract/version`. */
function exportsOf(workspaces: ReadonlySet<string>): (specifier: string) => string {
  const paths = new Map<string, string>()
  for (const folder of workspaces) {
    const { name, exports = {} } = readManifest(join(ROOT, folder))
    for (const [key, path] of Object.entries(exports))
      paths.set(posix.join(name, key), posix.join(folder, String(path)))
  }
  return (specifier) => {
    const path = paths.get(specifier) ?? paths.get(posix.join(dirname(specifier), '*'))
    if (path === undefined) throw new Error(`No package exports ${specifier}.`)
    return path.replace('*', posix.basename(specifier))
  }
}

/** Replaces each TypeScript file by JavaScript. Names of packages of this workspace become relative paths. */
function compile(target: string, pathOf: (specifier: string) => string): void {
  const files = ['infra', 'packages', 'services'].flatMap((name) => filesBelow(join(target, name)))
  for (const path of files.filter((file) => file.endsWith('.ts'))) {
    const folder = dirname(relative(target, path))
    const toRelative = (specifier: string): string => `./${posix.relative(folder, pathOf(specifier))}`
    const script = stripTypeScriptTypes(readFileSync(path, 'utf8'))
      .replaceAll(
        /(?<=\bfrom |\bimport |\bimport\()'(@keyward\/[^']+)'/g,
        (_, specifier: string) => `'${toRelative(specifier)}'`,
      )
      .replaceAll(/(['"`])(\.{1,2}\/[^'"`\n]*)\.ts\1/g, '$1$2.js$1')
    rmSync(path)
    writeFileSync(path.replace(/\.ts$/, '.js'), script)
  }
}

/** Returns the packages of all platforms, in the versions with recorded native files. npm installs those for the host and its Node. */
async function platformPackages(): Promise<Record<string, string>> {
  const packages = Object.keys(await readRecorded()).map((id) => [id.replace(/@[^@]+$/, ''), id.replace(/^.+@/, '')])
  return Object.fromEntries(packages.filter(([name]) => name !== 'uws-pack'))
}

async function manifest(target: string): Promise<object> {
  const modules = join(target, 'node_modules')
  const names = readdirSync(modules).flatMap((name) =>
    name.startsWith('@') ? readdirSync(join(modules, name)).map((inner) => `${name}/${inner}`) : [name],
  )
  const versionOf = (name: string): string => {
    const { name: published, version = '' } = readManifest(join(modules, name))
    return published === name ? version : `npm:${published}@${version}`
  }
  return {
    name: 'keyward',
    version: VERSION,
    description: readManifest(ROOT).description,
    keywords: ['license', 'license-key', 'licensing', 'entitlements'],
    license: 'Apache-2.0',
    repository: { type: 'git', url: `git+${REPOSITORY}.git` },
    homepage: `${REPOSITORY}#readme`,
    bugs: `${REPOSITORY}/issues`,
    type: 'module',
    bin: { keyward: BIN },
    exports: { './embedded': './services/validator/src/embedded/embedded.js', './package.json': './package.json' },
    dependencies: Object.fromEntries(names.map((name) => [name, versionOf(name)])),
    bundleDependencies: names,
    optionalDependencies: await platformPackages(),
    engines: { node: '>=20' },
    publishConfig: { access: 'public', provenance: true },
  }
}
