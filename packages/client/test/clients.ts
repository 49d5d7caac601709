/**
 * The clients of this project as programs for the contract suite, with the tools that each requires. Each client is packed, and installed
 * into an empty project with the commands of its README.
 */

import { execFile } from 'node:child_process'
import { copyFileSync, cpSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { VERSION } from '@keyward/contract/version'
import { unzipSync } from 'fflate'

import { GO_MODULE, PACKERS, packClient, packingPython, succeeds } from '../scripts/languages.ts'
import { installClient } from './installed.ts'

export interface ClientUnderTest {
  language: string
  /** The folder of the sources in `other-languages`, or null for the TypeScript client, which has its own test of the package. */
  folder: string | null
  /** Returns the tools that this machine lacks, or null if the client can run. */
  missing: () => string | null
  /**
   * Installs the client from the packages into an empty folder, and returns the command line of the program for the contract suite. Rejects
   * with the output of a command when it fails.
   */
  build: (project: string, packages: string) => Promise<string[]>
  /** Builds and starts the example of the README in the project, and returns its output. */
  runExample: (project: string, code: string) => Promise<string>
}

const at = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url))

export const readReadme = (folder: string): string => readFileSync(at(`other-languages/${folder}/README.md`), 'utf8')

/** Returns the code blocks of a README in a language. */
export function blocksOf(readme: string, fence: string): string[] {
  return [...readme.matchAll(new RegExp(`^\`\`\`${fence}\\n(.*?)^\`\`\``, 'gms'))].map(([, code = '']) => code)
}

/** Runs a command and returns its standard output. Rejects with the output of the command when it fails. */
async function run(cwd: string, command: string, args: readonly string[], env: Record<string, string> = {}) {
  const { stdout } = await promisify(execFile)(command, args, { cwd, env: { ...process.env, ...env } })
  return stdout
}

/** Runs the shell commands of a README as they are printed. */
async function runPrinted(folder: string, project: string, env: Record<string, string>): Promise<void> {
  const commands = blocksOf(readReadme(folder), 'sh')
  if (commands.length === 0) throw new Error(`The README in ${folder} prints no command.`)
  for (const command of commands) await run(project, 'sh', ['-ec', command], env)
}

/** Unpacks an archive of the packages into a folder, without the folder that contains all its files. */
function unpack(archive: string, to: string): void {
  for (const [name, bytes] of Object.entries(unzipSync(readFileSync(archive)))) {
    const path = join(to, name.slice(name.indexOf('/')))
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, bytes)
  }
}

const hasComposer = () => succeeds('composer', ['--version'])

/** Settings with which Go finds the packed module, and uses no network. */
const goSettings = (project: string) => ({
  GOFLAGS: '-buildvcs=false -modcacherw',
  GOPROXY: `file://${project}/proxy`,
  GOSUMDB: 'off',
  GOTOOLCHAIN: 'local',
  GOMODCACHE: join(project, 'modules'),
  GOCACHE: join(project, 'cache'),
})

/** Lays out the packed module as a module proxy does after a release has been tagged. */
function layOutProxy(project: string, packages: string): void {
  const versions = join(project, 'proxy', GO_MODULE, '@v')
  mkdirSync(versions, { recursive: true })
  copyFileSync(join(packages, `keyward-go-${VERSION}.zip`), join(versions, `v${VERSION}.zip`))
  copyFileSync(at('other-languages/go/go.mod'), join(versions, `v${VERSION}.mod`))
  writeFileSync(
    join(versions, `v${VERSION}.info`),
    JSON.stringify({ Version: `v${VERSION}`, Time: '2026-01-01T00:00:00Z' }),
  )
  writeFileSync(join(versions, 'list'), `v${VERSION}\n`)
}

/** Builds the project in a folder, which finds the installed headers, and returns the path of the program. */
async function buildWithCMake(source: string, prefix: string): Promise<string> {
  const options = [`-DCMAKE_PREFIX_PATH=${prefix}`, '-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror']
  await run(source, 'cmake', ['-S', '.', '-B', 'build', ...options])
  await run(source, 'cmake', ['--build', 'build'])
  return join(source, 'build/app')
}

/** Writes the CMake project that the README prints, with a program. Returns its folder. */
function writeProject(folder: string, program: string): string {
  const [lists = ''] = blocksOf(readReadme('cpp'), 'cmake')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'CMakeLists.txt'), lists)
  writeFileSync(join(folder, 'app.cpp'), program)
  return folder
}

export const clients: readonly ClientUnderTest[] = [
  {
    language: 'TypeScript',
    folder: null,
    missing: () => null,
    async build(project) {
      const installed = installClient()
      renameSync(join(installed, 'node_modules'), join(project, 'node_modules'))
      rmSync(installed, { recursive: true })
      const program = readFileSync(at('contract-suite/sdk.ts'), 'utf8')
        .replace("'../src/index.ts'", "'@keyward/client'")
        .replace("'../src/node.ts'", "'@keyward/client/node'")
        .replace("'@keyward/license-file'", "'./node_modules/@keyward/client/license-file/index.js'")
      writeFileSync(join(project, 'package.json'), '{"type":"module"}')
      writeFileSync(join(project, 'sdk.ts'), program)
      return [process.execPath, join(project, 'sdk.ts')]
    },
    runExample: () => Promise.reject(new Error('The TypeScript client has its own examples.')),
  },
  {
    language: 'Python',
    folder: 'python',
    missing: () =>
      packingPython === undefined ? 'skipped: no Python with cryptography, pip, setuptools and wheel' : null,
    async build(project, packages) {
      // The command is `python3`, which need not be the Python that has the packages.
      mkdirSync(join(project, 'bin'))
      writeFileSync(join(project, 'bin/python3'), `#!/bin/sh\nexec ${packingPython} "$@"\n`, { mode: 0o755 })
      await runPrinted('python', project, {
        PATH: `${join(project, 'bin')}:${process.env['PATH']}`,
        PIP_NO_INDEX: '1',
        PIP_NO_DEPS: '1',
        PIP_FIND_LINKS: packages,
        PIP_TARGET: join(project, 'site'),
      })
      copyFileSync(at('other-languages/python/contract.py'), join(project, 'contract.py'))
      return ['env', `PYTHONPATH=${join(project, 'site')}`, packingPython ?? '', '-B', join(project, 'contract.py')]
    },
    runExample(project, code) {
      writeFileSync(join(project, 'app.py'), code)
      return run(project, packingPython ?? '', ['-B', 'app.py'], { PYTHONPATH: join(project, 'site') })
    },
  },
  {
    language: 'Go',
    folder: 'go',
    missing: () => (succeeds('go', ['version']) ? null : 'skipped: no go'),
    async build(project, packages) {
      layOutProxy(project, packages)
      writeFileSync(join(project, 'go.mod'), 'module app\n\ngo 1.19\n')
      mkdirSync(join(project, 'contract'))
      copyFileSync(at('other-languages/go/contract/main.go'), join(project, 'contract/main.go'))
      await runPrinted('go', project, goSettings(project))
      await run(project, 'go', ['build', '-o', 'contract-go', './contract'], goSettings(project))
      return [join(project, 'contract-go')]
    },
    async runExample(project, code) {
      writeFileSync(join(project, 'main.go'), code)
      return run(project, 'go', ['run', '.'], goSettings(project))
    },
  },
  {
    language: 'PHP',
    folder: 'php',
    missing: () =>
      succeeds('php', ['-r', 'exit(extension_loaded("curl") && extension_loaded("sodium") ? 0 : 1);'])
        ? null
        : 'skipped: no php with the extensions curl and sodium',
    async build(project, packages) {
      const unpacked = join(project, 'keyward')
      unpack(join(packages, `keyward-php-${VERSION}.zip`), unpacked)
      const repositories = [{ type: 'path', url: unpacked, options: { symlink: false } }, { 'packagist.org': false }]
      writeFileSync(join(project, 'composer.json'), JSON.stringify({ repositories }))
      const env = {
        COMPOSER_HOME: join(project, 'composer'),
        COMPOSER_ALLOW_SUPERUSER: '1',
        COMPOSER_NO_INTERACTION: '1',
      }
      mkdirSync(join(project, 'vendor'))
      if (hasComposer()) await runPrinted('php', project, env)
      else writeFileSync(join(project, 'vendor/autoload.php'), `<?php require '${unpacked}/Keyward.php';`)
      copyFileSync(at('other-languages/php/contract.php'), join(project, 'contract.php'))
      return ['php', '-d', `auto_prepend_file=${join(project, 'vendor/autoload.php')}`, join(project, 'contract.php')]
    },
    runExample(project, code) {
      writeFileSync(join(project, 'app.php'), code)
      return run(project, 'php', ['app.php'])
    },
  },
  {
    language: 'Java',
    folder: 'java',
    missing: () => (succeeds('javac', ['--version']) ? null : 'skipped: no javac'),
    async build(project, packages) {
      const jar = `keyward-client-${VERSION}.jar`
      copyFileSync(join(packages, jar), join(project, jar))
      const program = at('other-languages/java/src/test/java/keyward/Contract.java')
      await run(project, 'javac', ['-Xlint:all', '-Werror', '-cp', jar, '-d', 'classes', program])
      const path = [jar, 'classes'].map((name) => join(project, name)).join(':')
      return ['java', '-XX:TieredStopAtLevel=1', '-Xmx64m', '-cp', path, 'keyward.Contract']
    },
    runExample(project, code) {
      writeFileSync(join(project, 'App.java'), code)
      return run(project, 'java', ['-cp', `keyward-client-${VERSION}.jar`, 'App.java'])
    },
  },
  {
    language: 'C++',
    folder: 'cpp',
    missing: () =>
      hasLibraries() && succeeds('cmake', ['--version'])
        ? null
        : 'skipped: no cmake, or no g++ with libcurl, OpenSSL 3 and nlohmann-json',
    async build(project, packages) {
      const archive = `keyward-cpp-${VERSION}.zip`
      copyFileSync(join(packages, archive), join(project, archive))
      await runPrinted('cpp', project, { HOME: project })
      const program = readFileSync(at('other-languages/cpp/contract.cpp'), 'utf8')
      return [await buildWithCMake(writeProject(join(project, 'contract'), program), join(project, 'keyward'))]
    },
    async runExample(project, code) {
      const built = await buildWithCMake(writeProject(join(project, 'app'), code), join(project, 'keyward'))
      return run(project, built, [])
    },
  },
  {
    language: 'C#',
    folder: 'csharp',
    missing: () => (succeeds('dotnet', ['--version']) ? null : 'skipped: no dotnet'),
    async build(project, packages) {
      cpSync(at('other-languages/csharp/contract'), project, { recursive: true })
      await run(project, 'dotnet', ['build', '--output', 'out', '--source', packages])
      return ['dotnet', join(project, 'out/contract.dll')]
    },
    async runExample(project, code) {
      writeFileSync(join(project, 'Contract.cs'), code)
      return run(project, 'dotnet', ['run'], { HOME: project })
    },
  },
]

/** Packs and installs a client in a new folder, and returns the command line of its program for the contract suite. */
export async function buildClient({ language, build }: ClientUnderTest, project: string): Promise<string[]> {
  const packages = `${project}-packages`
  mkdirSync(project, { recursive: true })
  if (PACKERS.some((packer) => packer.language === language)) await packClient(language, packages)
  return build(project, packages)
}

/** Returns whether the C++ compiler finds the headers of all libraries. */
function hasLibraries(): boolean {
  const headers = ['curl/curl.h', 'openssl/evp.h', 'nlohmann/json.hpp'].flatMap((header) => ['-include', header])
  return succeeds('g++', ['-std=c++17', '-E', ...headers, '-x', 'c++', '/dev/null', '-o', '/dev/null'])
}
