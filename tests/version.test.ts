/** All parts of the project have one version, which a release changes at once (RELEASES.md). */

import { expect, test } from 'vitest'
import { z } from 'zod'

import { projectFiles, read } from './files.ts'

const { version: VERSION } = z.object({ version: z.string() }).parse(JSON.parse(read('package.json')))

/** Matches the tag of an image, the name of a packed package, and the constants of programs and builds, with their versions. */
const MENTION =
  /(?:keyward-(?:\w+|\$part|\$\{\w+\})[:-]|newTag: '|"VERSION": \{ "default": "|\bVERSION=|\bVERSION = '|^ {2}"version": "|^version = "|<[vV]ersion>|project\(keyward VERSION |"Keyward.Client" Version=")(\d+\.\d+\.\d+)/gm

test('every tag, file name and manifest of this project has the same version', () => {
  const files = projectFiles().filter(
    (path) => /\.(?:csproj|md|toml|ts|txt|xml|ya?ml|json)$/.test(path) && !/results\//.test(path),
  )
  const mentions = files.flatMap((path) =>
    [...read(path).matchAll(MENTION)].map(([text, version]) => ({ path, text, version })),
  )
  expect(mentions.length).toBeGreaterThan(25)
  expect(mentions.filter(({ version }) => version !== VERSION)).toEqual([])
})

test('the changelog lists the changes of the next release first', () => {
  expect(/^## .*$/m.exec(read('CHANGELOG.md'))?.[0]).toBe('## [Unreleased]')
})

const CLIENTS = 'packages/client/other-languages'

test('every manifest names the repository', () => {
  const manifests = [
    'go/go.mod',
    'php/composer.json',
    'java/pom.xml',
    'csharp/Keyward.Client.csproj',
    'python/pyproject.toml',
  ]
  const files = [...manifests.map((name) => `${CLIENTS}/${name}`), 'package.json', 'packages/contract/src/version.ts']
  const others = files.filter((path) => !read(path).includes('github.com/keyward/keyward'))
  expect(others).toEqual([])
  expect(read(`${CLIENTS}/go/go.mod`)).toContain(`module github.com/keyward/keyward/${CLIENTS}/go\n`)
})

test('the README of the Java client names the coordinates in pom.xml', () => {
  const [pom, readme] = ['pom.xml', 'README.md'].map((name) => read(`${CLIENTS}/java/${name}`))
  const coordinates = (text = '') => /<groupId>.*\s*<artifactId>.*\s*<version>.*/.exec(text)?.[0].split(/\s+/)
  expect(coordinates(readme)).toEqual(coordinates(pom))
})
