/** The clients of this project as programs for the contract suite, with the tools that each requires. */

import { execFile, spawnSync } from 'node:child_process'
import { copyFileSync, cpSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

/** Settings with which Go uses no network. */
export const GO_SETTINGS = { GOFLAGS: '-buildvcs=false', GOPROXY: 'off', GOTOOLCHAIN: 'local' }

export interface ClientUnderTest {
  language: string
  /** Returns the tools that this machine lacks, or null if the client can run. */
  missing: () => string | null
  /** Builds the client in the folder and returns its command line. Rejects with the output of the compiler when it fails. */
  build: (folder: string) => Promise<string[]>
}

const at = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url))
const PYTHONS = ['python3', '/usr/bin/python3']
/** A Python that can pack the client. setuptools must be imported first, because it replaces a module that pip imports. */
const packing = PYTHONS.find((each) => succeeds(each, ['-c', 'import setuptools, pip, wheel, cryptography']))
export const python = packing ?? PYTHONS.find((each) => succeeds(each, ['-c', 'import cryptography']))

/**
 * Packs the Python client as a wheel, installs it into the folder without network, and returns the path for PYTHONPATH. Returns the path of
 * the sources if this machine cannot pack them.
 */
async function installPython(folder: string): Promise<string> {
  const sources = at('other-languages/python')
  if (packing === undefined) return sources
  const copy = join(folder, 'python-source')
  const wheels = join(folder, 'wheels')
  const site = join(folder, 'python')
  cpSync(sources, copy, { recursive: true }) // pip writes into the folder of the sources.
  const offline = ['--no-deps', '--no-index', '--quiet', '--disable-pip-version-check']
  await compile(
    packing,
    ['-m', 'pip', 'wheel', ...offline, '--no-build-isolation', '--wheel-dir', wheels, copy],
    folder,
  )
  const built = readdirSync(wheels).map((name) => join(wheels, name))
  await compile(packing, ['-m', 'pip', 'install', ...offline, '--target', site, ...built], folder)
  return site
}

export const clients: readonly ClientUnderTest[] = [
  {
    language: 'TypeScript',
    missing: () => null,
    build: async () => [process.execPath, at('contract-suite/sdk.ts')],
  },
  {
    language: 'Python',
    missing: () => (python === undefined ? 'skipped: no Python with the package cryptography' : null),
    async build(folder) {
      const program = join(folder, 'contract.py')
      copyFileSync(at('other-languages/python/contract.py'), program)
      return ['env', `PYTHONPATH=${await installPython(folder)}`, python ?? 'python3', '-B', program]
    },
  },
  {
    language: 'Go',
    missing: () => (succeeds('go', ['version']) ? null : 'skipped: no go'),
    async build(folder) {
      const program = join(folder, 'contract-go')
      const settings = { ...GO_SETTINGS, GOCACHE: join(folder, 'go') }
      await compile('go', ['build', '-o', program, './contract'], at('other-languages/go'), settings)
      return [program]
    },
  },
  {
    language: 'PHP',
    missing: () =>
      succeeds('php', ['-r', 'exit(extension_loaded("curl") && extension_loaded("sodium") ? 0 : 1);'])
        ? null
        : 'skipped: no php with the extensions curl and sodium',
    build: async () => ['php', at('other-languages/php/contract.php')],
  },
  {
    language: 'Java',
    missing: () => (succeeds('javac', ['--version']) ? null : 'skipped: no javac'),
    async build(folder) {
      const source = at('other-languages/java/keyward')
      const files = readdirSync(source).map((name) => join(source, name))
      await compile('javac', ['-Xlint:all', '-Werror', '-d', join(folder, 'java'), ...files], source)
      return ['java', '-XX:TieredStopAtLevel=1', '-Xmx64m', '-cp', join(folder, 'java'), 'keyward.Contract']
    },
  },
  {
    language: 'C++',
    missing: () => (hasLibraries() ? null : 'skipped: no g++ with libcurl, OpenSSL 3 and nlohmann-json'),
    async build(folder) {
      const program = join(folder, 'contract-cpp')
      if (succeeds('cmake', ['--version'])) return [await buildInstalledHeaders(folder)]
      const options = ['-std=c++17', '-Wall', '-Wextra', '-Werror']
      await compile('g++', [...options, 'contract.cpp', '-o', program, '-lcurl', '-lcrypto'], at('other-languages/cpp'))
      return [program]
    },
  },
  {
    language: 'C#',
    missing: () => (succeeds('dotnet', ['--version']) ? null : 'skipped: no dotnet'),
    async build(folder) {
      const output = join(folder, 'csharp')
      const options = ['-o', output, `-p:BaseIntermediateOutputPath=${join(folder, 'obj')}/`]
      await compile('dotnet', ['build', 'contract.csproj', ...options], at('other-languages/csharp'))
      return ['dotnet', join(output, 'contract.dll')]
    },
  },
]

/** Installs the CMake package of the C++ client into the folder, and builds the program in a project that finds the package there. */
async function buildInstalledHeaders(folder: string): Promise<string> {
  const [app, prefix, sources] = [join(folder, 'cpp-app'), join(folder, 'cpp'), at('other-languages/cpp')]
  mkdirSync(app)
  copyFileSync(join(sources, 'contract.cpp'), join(app, 'contract.cpp'))
  const project = `cmake_minimum_required(VERSION 3.16)
project(app LANGUAGES CXX)
find_package(keyward REQUIRED)
add_executable(contract contract.cpp)
target_link_libraries(contract PRIVATE keyward::keyward)
`
  writeFileSync(join(app, 'CMakeLists.txt'), project)
  const flags = '-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror'
  await compile('cmake', ['-S', sources, '-B', join(folder, 'cpp-package'), `-DCMAKE_INSTALL_PREFIX=${prefix}`], folder)
  await compile('cmake', ['--install', join(folder, 'cpp-package')], folder)
  await compile('cmake', ['-S', app, '-B', join(app, 'build'), `-DCMAKE_PREFIX_PATH=${prefix}`, flags], folder)
  await compile('cmake', ['--build', join(app, 'build')], folder)
  return join(app, 'build', 'contract')
}

/** Returns whether the C++ compiler finds the headers of all libraries. */
function hasLibraries(): boolean {
  const headers = ['curl/curl.h', 'openssl/evp.h', 'nlohmann/json.hpp'].flatMap((header) => ['-include', header])
  return succeeds('g++', ['-std=c++17', '-E', ...headers, '-x', 'c++', '/dev/null', '-o', '/dev/null'])
}

function succeeds(command: string, args: string[]): boolean {
  return spawnSync(command, args, { stdio: 'ignore' }).status === 0
}

async function compile(command: string, args: string[], cwd: string, settings: Record<string, string> = {}) {
  await promisify(execFile)(command, args, { cwd, env: { ...process.env, ...settings } })
}
