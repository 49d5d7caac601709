/** All parts of the project have one version, which a release changes at once (RELEASES.md). */

import { expect, test } from 'vitest'
import { z } from 'zod'

import { projectFiles, read } from './files.ts'

const { version: VERSION } = z.object({ version: z.string() }).parse(JSON.parse(read('package.json')))

/** Matches the tag of an image, the name of a packed package, and the constants of programs and builds, with their versions. */
const MENTION =
  /(?:keyward-(?:\w+|\$part|\$\{\w+\})[:-]|newTag: '|"VERSION": \{ "default": "|\bVERSION=|\bVERSION = '|^ {2}"version": "|^version = ")(\d+\.\d+\.\d+)/gm

test('every tag, file name and manifest of this project has the same version', () => {
  const files = projectFiles().filter((path) => /\.(?:md|ya?ml|json|toml|ts)$/.test(path) && !/results\//.test(path))
  const mentions = files.flatMap((path) =>
    [...read(path).matchAll(MENTION)].map(([text, version]) => ({ path, text, version })),
  )
  expect(mentions.length).toBeGreaterThan(15)
  expect(mentions.filter(({ version }) => version !== VERSION)).toEqual([])
})

test('the changelog lists the changes of the next release first', () => {
  expect(/^## .*$/m.exec(read('CHANGELOG.md'))?.[0]).toBe('## [Unreleased]')
})
