/**
 * Packs the clients in other languages, each in the form that the package manager of the language installs. Archives of equal sources are
 * equal, because all their times are the same.
 */

import { execFile, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, posix, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { REPOSITORY, VERSION } from '@keyward/contract/version'
import { strToU8, type Zippable, zipSync } from 'fflate'

const SOURCES = fileURLToPath(new URL('../other-languages/', import.meta.url))
/** The folder of the Go module in the repository, with which the tags of its versions begin. */
export const GO_FOLDER = 'packages/client/other-languages/go'
export const GO_MODULE = `${REPOSITORY.replace('https://', '')}/${GO_FOLDER}`
const LICENSE = fileURLToPath(new URL('../../../LICENSE', import.meta.url))
const run = promisify(execFile)

interface Packer {
  language: string
  /** Returns the tool that this machine lacks, or null. */
  missing: () => string | null
  /** Writes the packages into the folder. */
  pack: (folder: string) => Promise<unknown>
}

export function succeeds(command: string, args: readonly string[]): boolean {
  return spawnSync(command, args, { stdio: 'ignore' }).status === 0
}

/** A Python that can pack the client. setuptools must be imported first, because it replaces a module that pip imports. */
export const packingPython = ['python3', '/usr/bin/python3'].find((each) =>
  succeeds(each, ['-c', 'import setuptools, pip, wheel, cryptography']),
)

export const PACKERS: readonly Packer[] = [
  {
    language: 'Python',
    missing: () => (packingPython === undefined ? 'Python with pip, setuptools and wheel' : null),
    pack: (folder) =>
      inCopy('python', async (copy) => {
        // The functions change sys.argv.
        const build = 'import sys, setuptools.build_meta as b; to = sys.argv[1]; b.build_sdist(to); b.build_wheel(to)'
        const env = { ...process.env, SOURCE_DATE_EPOCH: '315532800' }
        await run(packingPython ?? '', ['-c', build, folder], { cwd: copy, env })
      }),
  },
  {
    language: 'Go',
    missing: () => null,
    pack: async (folder) =>
      zip(join(folder, `keyward-go-${VERSION}.zip`), `${GO_MODULE}@v${VERSION}`, readFolder('go')),
  },
  {
    language: 'PHP',
    missing: () => null,
    pack: async (folder) => zipOf(folder, 'php', readFolder('php', ['contract.php'])),
  },
  { language: 'Java', missing: () => (succeeds('javac', ['--version']) ? null : 'javac'), pack: packJava },
  {
    language: 'C++',
    missing: () => null,
    pack: async (folder) => {
      const files = readFolder('cpp', ['contract.cpp'])
      const others = Object.entries(files).filter(([name]) => !name.endsWith('.hpp'))
      const header = strToU8(withIncluded('keyward.hpp'))
      zipOf(folder, 'cpp', { ...Object.fromEntries(others), 'keyward.hpp': header })
    },
  },
  {
    language: 'C#',
    missing: () => (succeeds('dotnet', ['--version']) ? null : 'dotnet'),
    pack: (folder) => inCopy('csharp', (copy) => run('dotnet', ['pack', '--output', folder], { cwd: copy })),
  },
]

/** Packs the client of a language into the folder. */
export async function packClient(language: string, folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true })
  await PACKERS.find((one) => one.language === language)?.pack(folder)
}

/** Returns the files of a client with the license, without the given ones. The contract program of most languages is not for apps. */
function readFolder(folder: string, without: readonly string[] = []): Zippable {
  const root = join(SOURCES, folder)
  const names = readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) =>
      join(entry.parentPath, entry.name)
        .slice(root.length + 1)
        .split(sep)
        .join('/'),
    )
    .filter((name) => !without.includes(name))
    .toSorted()
  const files = names.map((name) => [name, readFileSync(join(root, name))] as const)
  return { LICENSE: readFileSync(LICENSE), ...Object.fromEntries(files) }
}

/** Writes an archive, whose files are below one folder. */
function zip(path: string, folder: string, files: Zippable): void {
  const entries = Object.entries(files).map(([name, bytes]) => [posix.join(folder, name), bytes] as const)
  writeFileSync(path, zipSync(Object.fromEntries(entries), { mtime: new Date(1980, 0, 1) }))
}

function zipOf(folder: string, name: string, files: Zippable): void {
  zip(join(folder, `keyward-${name}-${VERSION}.zip`), `keyward-${name}-${VERSION}`, files)
}

/** Calls the function with a copy of a client and the license, because builds write into the folder of their sources. */
async function inCopy(folder: string, use: (copy: string) => Promise<unknown>): Promise<void> {
  const copy = mkdtempSync(join(tmpdir(), `keyward-${folder}-`))
  try {
    cpSync(join(SOURCES, folder), copy, { recursive: true })
    cpSync(LICENSE, join(copy, 'LICENSE'))
    await use(copy)
  } finally {
    rmSync(copy, { recursive: true })
  }
}

/** Writes the files that a Maven repository contains: the classes for the release of Java in pom.xml, the sources, and pom.xml. */
async function packJava(folder: string): Promise<void> {
  const pom = readFileSync(join(SOURCES, 'java/pom.xml'), 'utf8')
  const [, release = ''] = /<maven\.compiler\.release>(\d+)</.exec(pom) ?? []
  const name = join(folder, `keyward-client-${VERSION}`)
  const sources = Object.entries(readFolder('java')).flatMap(([path, bytes]) => {
    const [, inner] = /^src\/main\/java\/(.+)/.exec(path) ?? []
    return inner === undefined ? [] : [[inner, bytes] as const]
  })
  const head = { 'META-INF/MANIFEST.MF': strToU8('Manifest-Version: 1.0\r\nAutomatic-Module-Name: keyward\r\n\r\n') }
  const license = { 'META-INF/LICENSE': readFileSync(LICENSE) }
  await inCopy('java', async (copy) => {
    const classes = join(copy, 'classes')
    const files = sources.map(([path]) => join('src/main/java', path))
    const options = ['-Xlint:all', '-Werror', '--release', release, '-encoding', 'UTF-8', '-d', classes]
    await run('javac', [...options, ...files], { cwd: copy })
    const compiled = readdirSync(join(classes, 'keyward')).map(
      (file) => [`keyward/${file}`, readFileSync(join(classes, 'keyward', file))] as const,
    )
    zip(`${name}.jar`, '', { ...head, ...license, ...Object.fromEntries(compiled) })
  })
  zip(`${name}-sources.jar`, '', { ...head, ...license, ...Object.fromEntries(sources) })
  writeFileSync(`${name}.pom`, pom)
}

/** Returns a header with those headers of its folder that it includes, each once, in place of their `#include`. */
function withIncluded(name: string, seen = new Set<string>()): string {
  seen.add(name)
  return readFileSync(join(SOURCES, 'cpp', name), 'utf8').replaceAll(
    /^#include "([\w.]+)"\n/gm,
    (line, inner: string) => {
      if (!existsSync(join(SOURCES, 'cpp', inner))) return line
      return seen.has(inner) ? '' : withIncluded(inner, seen).replaceAll(/^#pragma once\n/gm, '')
    },
  )
}
