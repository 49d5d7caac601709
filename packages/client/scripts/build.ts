/**
 * Compiles the client for publishing: JavaScript and type declarations. The result includes the license-file package, so that the only
 * dependency is @noble/curves. Invariant: the entry points for browsers are compiled without Node's types.
 */

import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

import { REPOSITORY, VERSION } from '@keyward/contract/version'

import { buildManagement } from './management.ts'

const client = fileURLToPath(new URL('..', import.meta.url))
const licenseFile = join(client, '../license-file')
const INNER = 'license-file'

/** Compiles the client into `target`, which then contains the files of the npm package. */
export function buildClient(target: string): void {
  // The folder is inside the workspace, so that the compiler finds Node's types.
  const staging = mkdtempSync(join(client, '.build-'))
  try {
    copySources(staging)
    compile(staging, target, ['index.ts', 'browser.ts', 'management-caller.ts'], ['es2022', 'dom'], [])
    compile(staging, target, ['node.ts'], ['es2022'], ['node'])
  } finally {
    rmSync(staging, { recursive: true })
  }
  rewriteDeclarations(target)
  buildManagement(target)
  writeFileSync(join(target, 'package.json'), `${JSON.stringify(manifest(), null, 2)}\n`)
  cpSync(join(client, 'README.md'), join(target, 'README.md'))
  const license = join(client, '../../LICENSE')
  if (existsSync(license)) cpSync(license, join(target, 'LICENSE'))
}

/** Copies the sources of the client, and those of license-file into the subfolder `license-file`. */
function copySources(staging: string): void {
  const sources = join(staging, 'src')
  cpSync(join(client, 'src'), sources, { recursive: true })
  cpSync(join(licenseFile, 'src'), join(sources, INNER), { recursive: true })
  for (const name of readdirSync(sources, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.ts') || name.startsWith(INNER)) continue
    const path = join(sources, name)
    const inner = relative(dirname(path), join(sources, INNER, 'index.ts'))
      .split(sep)
      .join('/')
    const specifier = inner.startsWith('.') ? inner : `./${inner}`
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll(`'@keyward/${INNER}'`, `'${specifier}'`))
  }
  symlinkSync(join(licenseFile, 'node_modules'), join(staging, 'node_modules'), 'dir')
}

function compile(staging: string, target: string, files: string[], lib: string[], types: string[]): void {
  const config = {
    extends: '../../../tsconfig.base.json',
    compilerOptions: {
      target: 'es2022',
      lib,
      types,
      rootDir: 'src',
      outDir: target,
      noEmit: false,
      declaration: true,
      rewriteRelativeImportExtensions: true,
      incremental: false,
      tsBuildInfoFile: null,
    },
    files: files.map((file) => `src/${file}`),
  }
  writeFileSync(join(staging, 'tsconfig.json'), JSON.stringify(config))
  const typescript = dirname(createRequire(import.meta.url).resolve('typescript/package.json'))
  execFileSync(process.execPath, [join(typescript, 'bin/tsc'), '-p', staging], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
}

/**
 * Rewrites imports of `./x.ts` in declarations to `./x.js`, because some TypeScript configurations reject `.ts`. The compiler rewrites only
 * JavaScript.
 */
function rewriteDeclarations(target: string): void {
  for (const name of readdirSync(target, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.d.ts')) continue
    const declarations = readFileSync(join(target, name), 'utf8')
    writeFileSync(join(target, name), declarations.replaceAll(/ from '(\.[^']*)\.ts'/g, " from '$1.js'"))
  }
}

function manifest(): object {
  const entry = (name: string) => ({ types: `./${name}.d.ts`, default: `./${name}.js` })
  return {
    name: '@keyward/client',
    version: VERSION,
    description: readField(join(client, 'package.json'), 'description'),
    keywords: ['license', 'license-key', 'licensing', 'offline', 'entitlements'],
    license: readField(join(client, 'package.json'), 'license'),
    // npm accepts a statement of provenance only from the workflow of this repository.
    repository: { type: 'git', url: `git+${REPOSITORY}.git`, directory: 'packages/client' },
    homepage: `${REPOSITORY}#readme`,
    bugs: `${REPOSITORY}/issues`,
    type: 'module',
    sideEffects: false,
    exports: {
      '.': entry('index'),
      './browser': entry('browser'),
      './node': entry('node'),
      './management': entry('management'),
    },
    dependencies: {
      '@noble/curves': `^${readField(join(licenseFile, 'node_modules/@noble/curves/package.json'), 'version')}`,
    },
    engines: { node: '>=20.19' },
    publishConfig: { access: 'public', provenance: true },
  }
}

function readField(path: string, field: string): string {
  const manifestFile: unknown = JSON.parse(readFileSync(path, 'utf8'))
  if (typeof manifestFile === 'object' && manifestFile !== null) {
    const value: unknown = Object.entries(manifestFile).find(([name]) => name === field)?.[1]
    if (typeof value === 'string') return value
  }
  throw new Error(`${path} has no field "${field}".`)
}
